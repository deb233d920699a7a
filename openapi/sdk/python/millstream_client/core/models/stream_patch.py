from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.event_times import EventTimes
from ..models.stream_mode import StreamMode
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.stream_patch_tags import StreamPatchTags


T = TypeVar("T", bound="StreamPatch")


@_attrs_define
class StreamPatch:
    """Changes to a stream (a JSON Merge Patch); null resets a field to its default.

    `retention_seconds`, `hot_retention_seconds` and `hot_bytes_max` are instead set to none.

        Attributes:
            mode (None | StreamMode | Unset):
            retention_seconds (float | None | Unset):
            retention_bytes (int | None | Unset):
            retention_records (int | None | Unset):
            drop_when_read (bool | None | Unset):
            record_bytes_max (int | None | Unset):
            event_times (EventTimes | None | Unset):
            event_time_skew_seconds_max (float | None | Unset):
            key_index (bool | None | Unset):
            archive (bool | None | Unset):
            archive_lag_seconds (float | None | Unset):
            hot_retention_seconds (float | None | Unset):
            hot_bytes_max (int | None | Unset):
            tags (None | StreamPatchTags | Unset):
    """

    mode: None | StreamMode | Unset = UNSET
    retention_seconds: float | None | Unset = UNSET
    retention_bytes: int | None | Unset = UNSET
    retention_records: int | None | Unset = UNSET
    drop_when_read: bool | None | Unset = UNSET
    record_bytes_max: int | None | Unset = UNSET
    event_times: EventTimes | None | Unset = UNSET
    event_time_skew_seconds_max: float | None | Unset = UNSET
    key_index: bool | None | Unset = UNSET
    archive: bool | None | Unset = UNSET
    archive_lag_seconds: float | None | Unset = UNSET
    hot_retention_seconds: float | None | Unset = UNSET
    hot_bytes_max: int | None | Unset = UNSET
    tags: None | StreamPatchTags | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.stream_patch_tags import StreamPatchTags  # noqa: PLC0415

        mode: None | str | Unset
        if isinstance(self.mode, Unset):
            mode = UNSET
        elif isinstance(self.mode, StreamMode):
            mode = self.mode.value
        else:
            mode = self.mode

        retention_seconds: float | None | Unset
        if isinstance(self.retention_seconds, Unset):
            retention_seconds = UNSET
        else:
            retention_seconds = self.retention_seconds

        retention_bytes: int | None | Unset
        if isinstance(self.retention_bytes, Unset):
            retention_bytes = UNSET
        else:
            retention_bytes = self.retention_bytes

        retention_records: int | None | Unset
        if isinstance(self.retention_records, Unset):
            retention_records = UNSET
        else:
            retention_records = self.retention_records

        drop_when_read: bool | None | Unset
        if isinstance(self.drop_when_read, Unset):
            drop_when_read = UNSET
        else:
            drop_when_read = self.drop_when_read

        record_bytes_max: int | None | Unset
        if isinstance(self.record_bytes_max, Unset):
            record_bytes_max = UNSET
        else:
            record_bytes_max = self.record_bytes_max

        event_times: None | str | Unset
        if isinstance(self.event_times, Unset):
            event_times = UNSET
        elif isinstance(self.event_times, EventTimes):
            event_times = self.event_times.value
        else:
            event_times = self.event_times

        event_time_skew_seconds_max: float | None | Unset
        if isinstance(self.event_time_skew_seconds_max, Unset):
            event_time_skew_seconds_max = UNSET
        else:
            event_time_skew_seconds_max = self.event_time_skew_seconds_max

        key_index: bool | None | Unset
        if isinstance(self.key_index, Unset):
            key_index = UNSET
        else:
            key_index = self.key_index

        archive: bool | None | Unset
        if isinstance(self.archive, Unset):
            archive = UNSET
        else:
            archive = self.archive

        archive_lag_seconds: float | None | Unset
        if isinstance(self.archive_lag_seconds, Unset):
            archive_lag_seconds = UNSET
        else:
            archive_lag_seconds = self.archive_lag_seconds

        hot_retention_seconds: float | None | Unset
        if isinstance(self.hot_retention_seconds, Unset):
            hot_retention_seconds = UNSET
        else:
            hot_retention_seconds = self.hot_retention_seconds

        hot_bytes_max: int | None | Unset
        if isinstance(self.hot_bytes_max, Unset):
            hot_bytes_max = UNSET
        else:
            hot_bytes_max = self.hot_bytes_max

        tags: dict[str, Any] | None | Unset
        if isinstance(self.tags, Unset):
            tags = UNSET
        elif isinstance(self.tags, StreamPatchTags):
            tags = self.tags.to_dict()
        else:
            tags = self.tags

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if mode is not UNSET:
            field_dict["mode"] = mode
        if retention_seconds is not UNSET:
            field_dict["retention_seconds"] = retention_seconds
        if retention_bytes is not UNSET:
            field_dict["retention_bytes"] = retention_bytes
        if retention_records is not UNSET:
            field_dict["retention_records"] = retention_records
        if drop_when_read is not UNSET:
            field_dict["drop_when_read"] = drop_when_read
        if record_bytes_max is not UNSET:
            field_dict["record_bytes_max"] = record_bytes_max
        if event_times is not UNSET:
            field_dict["event_times"] = event_times
        if event_time_skew_seconds_max is not UNSET:
            field_dict["event_time_skew_seconds_max"] = event_time_skew_seconds_max
        if key_index is not UNSET:
            field_dict["key_index"] = key_index
        if archive is not UNSET:
            field_dict["archive"] = archive
        if archive_lag_seconds is not UNSET:
            field_dict["archive_lag_seconds"] = archive_lag_seconds
        if hot_retention_seconds is not UNSET:
            field_dict["hot_retention_seconds"] = hot_retention_seconds
        if hot_bytes_max is not UNSET:
            field_dict["hot_bytes_max"] = hot_bytes_max
        if tags is not UNSET:
            field_dict["tags"] = tags

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.stream_patch_tags import StreamPatchTags  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_mode(data: object) -> None | StreamMode | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                mode_type_0 = StreamMode(data)

                return mode_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | StreamMode | Unset, data)

        mode = _parse_mode(d.pop("mode", UNSET))

        def _parse_retention_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        retention_seconds = _parse_retention_seconds(d.pop("retention_seconds", UNSET))

        def _parse_retention_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        retention_bytes = _parse_retention_bytes(d.pop("retention_bytes", UNSET))

        def _parse_retention_records(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        retention_records = _parse_retention_records(d.pop("retention_records", UNSET))

        def _parse_drop_when_read(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        drop_when_read = _parse_drop_when_read(d.pop("drop_when_read", UNSET))

        def _parse_record_bytes_max(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        record_bytes_max = _parse_record_bytes_max(d.pop("record_bytes_max", UNSET))

        def _parse_event_times(data: object) -> EventTimes | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                event_times_type_0 = EventTimes(data)

                return event_times_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(EventTimes | None | Unset, data)

        event_times = _parse_event_times(d.pop("event_times", UNSET))

        def _parse_event_time_skew_seconds_max(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        event_time_skew_seconds_max = _parse_event_time_skew_seconds_max(
            d.pop("event_time_skew_seconds_max", UNSET)
        )

        def _parse_key_index(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        key_index = _parse_key_index(d.pop("key_index", UNSET))

        def _parse_archive(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        archive = _parse_archive(d.pop("archive", UNSET))

        def _parse_archive_lag_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        archive_lag_seconds = _parse_archive_lag_seconds(d.pop("archive_lag_seconds", UNSET))

        def _parse_hot_retention_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        hot_retention_seconds = _parse_hot_retention_seconds(d.pop("hot_retention_seconds", UNSET))

        def _parse_hot_bytes_max(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        hot_bytes_max = _parse_hot_bytes_max(d.pop("hot_bytes_max", UNSET))

        def _parse_tags(data: object) -> None | StreamPatchTags | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                tags_type_0 = StreamPatchTags.from_dict(data)

                return tags_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | StreamPatchTags | Unset, data)

        tags = _parse_tags(d.pop("tags", UNSET))

        stream_patch = cls(
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
        )

        return stream_patch
