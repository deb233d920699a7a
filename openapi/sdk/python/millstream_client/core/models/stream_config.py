from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.event_times import EventTimes
from ..models.stream_mode import StreamMode
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.stream_config_tags import StreamConfigTags


T = TypeVar("T", bound="StreamConfig")


@_attrs_define
class StreamConfig:
    """The complete configuration of a stream; omitted fields take their default.

    Attributes:
        shards (int | Unset): Initial number of shards. Use a reshard to change it. Default: 1.
        mode (StreamMode | Unset): Capacity mode: how the number of shards is determined.
        retention_seconds (float | None | Unset): null (also in a patch): unlimited. Default: 604800.0.
        retention_bytes (int | None | Unset): Per shard; null: no limit.
        retention_records (int | None | Unset): Per shard; null: no limit.
        drop_when_read (bool | Unset): Delete a record when all consumer groups have committed it. Default: False.
        record_bytes_max (int | Unset):  Default: 1048576.
        event_times (EventTimes | Unset): Handling of the event times that producers give.
        event_time_skew_seconds_max (float | None | Unset): Maximum difference between an event time and now; null:
            unlimited.
        key_index (bool | Unset): Index for reading the latest record of a key; costs about 100 bytes per key. Default:
            False.
        archive (bool | Unset): Copy records to Parquet, if the deployment has an archive. Default: True.
        archive_lag_seconds (float | Unset): Approximate time until a record is archived. Default: 300.0.
        hot_retention_seconds (float | None | Unset): Time that archived records also stay in the hot store; null: until
            memory is needed. Default: 86400.0.
        hot_bytes_max (int | None | Unset): Maximum size of an archived stream's shard in the hot store. When half of it
            is not yet archived, writes are rejected with 429. null: no limit. Default: 1073741824.
        tags (StreamConfigTags | Unset): Up to 50 user-defined tags.
    """

    shards: int | Unset = 1
    mode: StreamMode | Unset = UNSET
    retention_seconds: float | None | Unset = 604800.0
    retention_bytes: int | None | Unset = UNSET
    retention_records: int | None | Unset = UNSET
    drop_when_read: bool | Unset = False
    record_bytes_max: int | Unset = 1048576
    event_times: EventTimes | Unset = UNSET
    event_time_skew_seconds_max: float | None | Unset = UNSET
    key_index: bool | Unset = False
    archive: bool | Unset = True
    archive_lag_seconds: float | Unset = 300.0
    hot_retention_seconds: float | None | Unset = 86400.0
    hot_bytes_max: int | None | Unset = 1073741824
    tags: StreamConfigTags | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        shards = self.shards

        mode: str | Unset = UNSET
        if not isinstance(self.mode, Unset):
            mode = self.mode.value

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

        drop_when_read = self.drop_when_read

        record_bytes_max = self.record_bytes_max

        event_times: str | Unset = UNSET
        if not isinstance(self.event_times, Unset):
            event_times = self.event_times.value

        event_time_skew_seconds_max: float | None | Unset
        if isinstance(self.event_time_skew_seconds_max, Unset):
            event_time_skew_seconds_max = UNSET
        else:
            event_time_skew_seconds_max = self.event_time_skew_seconds_max

        key_index = self.key_index

        archive = self.archive

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

        tags: dict[str, Any] | Unset = UNSET
        if not isinstance(self.tags, Unset):
            tags = self.tags.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if shards is not UNSET:
            field_dict["shards"] = shards
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
        from ..models.stream_config_tags import StreamConfigTags  # noqa: PLC0415

        d = dict(src_dict)
        shards = d.pop("shards", UNSET)

        _mode = d.pop("mode", UNSET)
        mode: StreamMode | Unset
        if isinstance(_mode, Unset):
            mode = UNSET
        else:
            mode = StreamMode(_mode)

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

        drop_when_read = d.pop("drop_when_read", UNSET)

        record_bytes_max = d.pop("record_bytes_max", UNSET)

        _event_times = d.pop("event_times", UNSET)
        event_times: EventTimes | Unset
        if isinstance(_event_times, Unset):
            event_times = UNSET
        else:
            event_times = EventTimes(_event_times)

        def _parse_event_time_skew_seconds_max(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        event_time_skew_seconds_max = _parse_event_time_skew_seconds_max(
            d.pop("event_time_skew_seconds_max", UNSET)
        )

        key_index = d.pop("key_index", UNSET)

        archive = d.pop("archive", UNSET)

        archive_lag_seconds = d.pop("archive_lag_seconds", UNSET)

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

        _tags = d.pop("tags", UNSET)
        tags: StreamConfigTags | Unset
        if isinstance(_tags, Unset):
            tags = UNSET
        else:
            tags = StreamConfigTags.from_dict(_tags)

        stream_config = cls(
            shards=shards,
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

        return stream_config
