from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="SourceRangeOut")


@_attrs_define
class SourceRangeOut:
    """Records of a shard that contributed to a row, from `first` to `last`.

    A record that is joined with several rows of a table counts once for each.

        Attributes:
            shard (int):
            first (int):
            last (int):
            records (int):
    """

    shard: int
    first: int
    last: int
    records: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        shard = self.shard

        first = self.first

        last = self.last

        records = self.records

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "shard": shard,
                "first": first,
                "last": last,
                "records": records,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        shard = d.pop("shard")

        first = d.pop("first")

        last = d.pop("last")

        records = d.pop("records")

        source_range_out = cls(
            shard=shard,
            first=first,
            last=last,
            records=records,
        )

        source_range_out.additional_properties = d
        return source_range_out

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
