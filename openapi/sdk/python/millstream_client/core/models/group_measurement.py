from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="GroupMeasurement")


@_attrs_define
class GroupMeasurement:
    """Lag and rate of a group, measured every ten seconds.

    The rate is per second since the one before; null if there was none.

        Attributes:
            measured_at (datetime.datetime):
            members (int):
            lag_records (int):
            oldest_unread_at (datetime.datetime | None): Arrival of the oldest record that the group has not read.
            last_commit_at (datetime.datetime | None):
            committed_per_second (float | None):
    """

    measured_at: datetime.datetime
    members: int
    lag_records: int
    oldest_unread_at: datetime.datetime | None
    last_commit_at: datetime.datetime | None
    committed_per_second: float | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        measured_at = self.measured_at.isoformat()

        members = self.members

        lag_records = self.lag_records

        oldest_unread_at: None | str
        if isinstance(self.oldest_unread_at, datetime.datetime):
            oldest_unread_at = self.oldest_unread_at.isoformat()
        else:
            oldest_unread_at = self.oldest_unread_at

        last_commit_at: None | str
        if isinstance(self.last_commit_at, datetime.datetime):
            last_commit_at = self.last_commit_at.isoformat()
        else:
            last_commit_at = self.last_commit_at

        committed_per_second: float | None
        committed_per_second = self.committed_per_second

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "measured_at": measured_at,
                "members": members,
                "lag_records": lag_records,
                "oldest_unread_at": oldest_unread_at,
                "last_commit_at": last_commit_at,
                "committed_per_second": committed_per_second,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        measured_at = datetime.datetime.fromisoformat(d.pop("measured_at"))

        members = d.pop("members")

        lag_records = d.pop("lag_records")

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

        def _parse_last_commit_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_commit_at_type_0 = datetime.datetime.fromisoformat(data)

                return last_commit_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        last_commit_at = _parse_last_commit_at(d.pop("last_commit_at"))

        def _parse_committed_per_second(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        committed_per_second = _parse_committed_per_second(d.pop("committed_per_second"))

        group_measurement = cls(
            measured_at=measured_at,
            members=members,
            lag_records=lag_records,
            oldest_unread_at=oldest_unread_at,
            last_commit_at=last_commit_at,
            committed_per_second=committed_per_second,
        )

        group_measurement.additional_properties = d
        return group_measurement

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
