from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="LoadSplitOut")


@_attrs_define
class LoadSplitOut:
    """A split point, and the share of the sampled records that the larger child would take.

    Attributes:
        at_hash_key (str): For `split.at_hash_key` of a reshard.
        larger_share (float):
    """

    at_hash_key: str
    larger_share: float
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        at_hash_key = self.at_hash_key

        larger_share = self.larger_share

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at_hash_key": at_hash_key,
                "larger_share": larger_share,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        at_hash_key = d.pop("at_hash_key")

        larger_share = d.pop("larger_share")

        load_split_out = cls(
            at_hash_key=at_hash_key,
            larger_share=larger_share,
        )

        load_split_out.additional_properties = d
        return load_split_out

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
