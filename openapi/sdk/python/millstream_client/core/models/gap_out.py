from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="GapOut")


@_attrs_define
class GapOut:
    """Offsets [first, next) that cannot be read.

    `reason`: 'expired' by retention; 'failover', without a record that was acknowledged; or a 'hole', whose records, if
    there
    were any, are lost.

        Attributes:
            first (int):
            next_ (int):
            reason (str):
            shard (int | Unset):
    """

    first: int
    next_: int
    reason: str
    shard: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        first = self.first

        next_ = self.next_

        reason = self.reason

        shard = self.shard

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "first": first,
                "next": next_,
                "reason": reason,
            }
        )
        if shard is not UNSET:
            field_dict["shard"] = shard

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        first = d.pop("first")

        next_ = d.pop("next")

        reason = d.pop("reason")

        shard = d.pop("shard", UNSET)

        gap_out = cls(
            first=first,
            next_=next_,
            reason=reason,
            shard=shard,
        )

        gap_out.additional_properties = d
        return gap_out

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
