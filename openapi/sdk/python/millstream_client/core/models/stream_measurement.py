from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="StreamMeasurement")


@_attrs_define
class StreamMeasurement:
    """Counts and rates of a stream, measured every ten seconds.

    Rates are per second since the one before; null if there was none.

        Attributes:
            measured_at (datetime.datetime):
            records (int): In the hot store.
            bytes_held (int): In the hot store.
            groups (int):
            lag_records (int | None): Of the group with the largest lag; null without groups.
            oldest_unread_at (datetime.datetime | None): Arrival of the oldest record that some group has not read.
            records_in_per_second (float | None):
            bytes_in_per_second (float | None):
    """

    measured_at: datetime.datetime
    records: int
    bytes_held: int
    groups: int
    lag_records: int | None
    oldest_unread_at: datetime.datetime | None
    records_in_per_second: float | None
    bytes_in_per_second: float | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        measured_at = self.measured_at.isoformat()

        records = self.records

        bytes_held = self.bytes_held

        groups = self.groups

        lag_records: int | None
        lag_records = self.lag_records

        oldest_unread_at: None | str
        if isinstance(self.oldest_unread_at, datetime.datetime):
            oldest_unread_at = self.oldest_unread_at.isoformat()
        else:
            oldest_unread_at = self.oldest_unread_at

        records_in_per_second: float | None
        records_in_per_second = self.records_in_per_second

        bytes_in_per_second: float | None
        bytes_in_per_second = self.bytes_in_per_second

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "measured_at": measured_at,
                "records": records,
                "bytes_held": bytes_held,
                "groups": groups,
                "lag_records": lag_records,
                "oldest_unread_at": oldest_unread_at,
                "records_in_per_second": records_in_per_second,
                "bytes_in_per_second": bytes_in_per_second,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        measured_at = datetime.datetime.fromisoformat(d.pop("measured_at"))

        records = d.pop("records")

        bytes_held = d.pop("bytes_held")

        groups = d.pop("groups")

        def _parse_lag_records(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        lag_records = _parse_lag_records(d.pop("lag_records"))

        def _parse_oldest_unread_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                oldest_unread_at_type_0 = datetime.datetime.fromisoformat(data)

                return oldest_unread_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        oldest_unread_at = _parse_oldest_unread_at(d.pop("oldest_unread_at"))

        def _parse_records_in_per_second(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        records_in_per_second = _parse_records_in_per_second(d.pop("records_in_per_second"))

        def _parse_bytes_in_per_second(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        bytes_in_per_second = _parse_bytes_in_per_second(d.pop("bytes_in_per_second"))

        stream_measurement = cls(
            measured_at=measured_at,
            records=records,
            bytes_held=bytes_held,
            groups=groups,
            lag_records=lag_records,
            oldest_unread_at=oldest_unread_at,
            records_in_per_second=records_in_per_second,
            bytes_in_per_second=bytes_in_per_second,
        )

        stream_measurement.additional_properties = d
        return stream_measurement

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
