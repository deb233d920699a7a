from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ChildOut")


@_attrs_define
class ChildOut:
    """A shard that continues where its parents were closed: read it after all of them.

    Attributes:
        shard (int):
        first_hash_key (str):
        last_hash_key (str):
        parents (list[int]):
    """

    shard: int
    first_hash_key: str
    last_hash_key: str
    parents: list[int]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        shard = self.shard

        first_hash_key = self.first_hash_key

        last_hash_key = self.last_hash_key

        parents = self.parents

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "shard": shard,
                "first_hash_key": first_hash_key,
                "last_hash_key": last_hash_key,
                "parents": parents,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        shard = d.pop("shard")

        first_hash_key = d.pop("first_hash_key")

        last_hash_key = d.pop("last_hash_key")

        parents = cast(list[int], d.pop("parents"))

        child_out = cls(
            shard=shard,
            first_hash_key=first_hash_key,
            last_hash_key=last_hash_key,
            parents=parents,
        )

        child_out.additional_properties = d
        return child_out

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
