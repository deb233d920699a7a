from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.event_times import EventTimes
from ..models.stream_mode import StreamMode

if TYPE_CHECKING:
    from ..models.field_change import FieldChange
    from ..models.stream_stored_tags import StreamStoredTags


T = TypeVar("T", bound="StreamStored")


@_attrs_define
class StreamStored:
    """A stream after a PUT, and what the PUT changed.

    Attributes:
        name (str):
        shards (int): Number of shards at creation.
        open_shards (int): Now.
        mode (StreamMode): Capacity mode: how the number of shards is determined.
        retention_seconds (float | None):
        retention_bytes (int | None):
        retention_records (int | None):
        drop_when_read (bool):
        record_bytes_max (int):
        event_times (EventTimes): Handling of the event times that producers give.
        event_time_skew_seconds_max (float | None):
        key_index (bool):
        archive (bool):
        archive_lag_seconds (float):
        hot_retention_seconds (float | None):
        hot_bytes_max (int | None):
        tags (StreamStoredTags):
        version (int):
        created_at (datetime.datetime):
        changed_at (datetime.datetime):
        created (bool): False if the object existed.
        dry_run (bool): True if nothing was stored.
        changes (list[FieldChange]): Fields that differ from those before.
    """

    name: str
    shards: int
    open_shards: int
    mode: StreamMode
    retention_seconds: float | None
    retention_bytes: int | None
    retention_records: int | None
    drop_when_read: bool
    record_bytes_max: int
    event_times: EventTimes
    event_time_skew_seconds_max: float | None
    key_index: bool
    archive: bool
    archive_lag_seconds: float
    hot_retention_seconds: float | None
    hot_bytes_max: int | None
    tags: StreamStoredTags
    version: int
    created_at: datetime.datetime
    changed_at: datetime.datetime
    created: bool
    dry_run: bool
    changes: list[FieldChange]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        shards = self.shards

        open_shards = self.open_shards

        mode = self.mode.value

        retention_seconds: float | None
        retention_seconds = self.retention_seconds

        retention_bytes: int | None
        retention_bytes = self.retention_bytes

        retention_records: int | None
        retention_records = self.retention_records

        drop_when_read = self.drop_when_read

        record_bytes_max = self.record_bytes_max

        event_times = self.event_times.value

        event_time_skew_seconds_max: float | None
        event_time_skew_seconds_max = self.event_time_skew_seconds_max

        key_index = self.key_index

        archive = self.archive

        archive_lag_seconds = self.archive_lag_seconds

        hot_retention_seconds: float | None
        hot_retention_seconds = self.hot_retention_seconds

        hot_bytes_max: int | None
        hot_bytes_max = self.hot_bytes_max

        tags = self.tags.to_dict()

        version = self.version

        created_at = self.created_at.isoformat()

        changed_at = self.changed_at.isoformat()

        created = self.created

        dry_run = self.dry_run

        changes = []
        for changes_item_data in self.changes:
            changes_item = changes_item_data.to_dict()
            changes.append(changes_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "shards": shards,
                "open_shards": open_shards,
                "mode": mode,
                "retention_seconds": retention_seconds,
                "retention_bytes": retention_bytes,
                "retention_records": retention_records,
                "drop_when_read": drop_when_read,
                "record_bytes_max": record_bytes_max,
                "event_times": event_times,
                "event_time_skew_seconds_max": event_time_skew_seconds_max,
                "key_index": key_index,
                "archive": archive,
                "archive_lag_seconds": archive_lag_seconds,
                "hot_retention_seconds": hot_retention_seconds,
                "hot_bytes_max": hot_bytes_max,
                "tags": tags,
                "version": version,
                "created_at": created_at,
                "changed_at": changed_at,
                "created": created,
                "dry_run": dry_run,
                "changes": changes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.field_change import FieldChange  # noqa: PLC0415
        from ..models.stream_stored_tags import StreamStoredTags  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        shards = d.pop("shards")

        open_shards = d.pop("open_shards")

        mode = StreamMode(d.pop("mode"))

        def _parse_retention_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        retention_seconds = _parse_retention_seconds(d.pop("retention_seconds"))

        def _parse_retention_bytes(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        retention_bytes = _parse_retention_bytes(d.pop("retention_bytes"))

        def _parse_retention_records(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        retention_records = _parse_retention_records(d.pop("retention_records"))

        drop_when_read = d.pop("drop_when_read")

        record_bytes_max = d.pop("record_bytes_max")

        event_times = EventTimes(d.pop("event_times"))

        def _parse_event_time_skew_seconds_max(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        event_time_skew_seconds_max = _parse_event_time_skew_seconds_max(
            d.pop("event_time_skew_seconds_max")
        )

        key_index = d.pop("key_index")

        archive = d.pop("archive")

        archive_lag_seconds = d.pop("archive_lag_seconds")

        def _parse_hot_retention_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        hot_retention_seconds = _parse_hot_retention_seconds(d.pop("hot_retention_seconds"))

        def _parse_hot_bytes_max(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        hot_bytes_max = _parse_hot_bytes_max(d.pop("hot_bytes_max"))

        tags = StreamStoredTags.from_dict(d.pop("tags"))

        version = d.pop("version")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        changed_at = datetime.datetime.fromisoformat(d.pop("changed_at"))

        created = d.pop("created")

        dry_run = d.pop("dry_run")

        changes = []
        _changes = d.pop("changes")
        for changes_item_data in _changes:
            changes_item = FieldChange.from_dict(changes_item_data)

            changes.append(changes_item)

        stream_stored = cls(
            name=name,
            shards=shards,
            open_shards=open_shards,
            mode=mode,
            retention_seconds=retention_seconds,
            retention_bytes=retention_bytes,
            retention_records=retention_records,
            drop_when_read=drop_when_read,
            record_bytes_max=record_bytes_max,
            event_times=event_times,
            event_time_skew_seconds_max=event_time_skew_seconds_max,
            key_index=key_index,
            archive=archive,
            archive_lag_seconds=archive_lag_seconds,
            hot_retention_seconds=hot_retention_seconds,
            hot_bytes_max=hot_bytes_max,
            tags=tags,
            version=version,
            created_at=created_at,
            changed_at=changed_at,
            created=created,
            dry_run=dry_run,
            changes=changes,
        )

        stream_stored.additional_properties = d
        return stream_stored

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
