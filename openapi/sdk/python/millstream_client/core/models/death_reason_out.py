from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="DeathReasonOut")


@_attrs_define
class DeathReasonOut:
    """Dead letters with the same reason.

    Attributes:
        reason (str):
        count (int):
        first_died_at (datetime.datetime):
        last_died_at (datetime.datetime):
    """

    reason: str
    count: int
    first_died_at: datetime.datetime
    last_died_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        reason = self.reason

        count = self.count

        first_died_at = self.first_died_at.isoformat()

        last_died_at = self.last_died_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "reason": reason,
                "count": count,
                "first_died_at": first_died_at,
                "last_died_at": last_died_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        reason = d.pop("reason")

        count = d.pop("count")

        first_died_at = datetime.datetime.fromisoformat(d.pop("first_died_at"))

        last_died_at = datetime.datetime.fromisoformat(d.pop("last_died_at"))

        death_reason_out = cls(
            reason=reason,
            count=count,
            first_died_at=first_died_at,
            last_died_at=last_died_at,
        )

        death_reason_out.additional_properties = d
        return death_reason_out

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
