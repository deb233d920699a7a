from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="StoreReplacement")


@_attrs_define
class StoreReplacement:
    """A permanently lost member, and the empty store that replaces it.

    Attributes:
        old (str): `host:port` of a store.
        new (str): `host:port` of a store.
    """

    old: str
    new: str

    def to_dict(self) -> dict[str, Any]:
        old = self.old

        new = self.new

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "old": old,
                "new": new,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        old = d.pop("old")

        new = d.pop("new")

        store_replacement = cls(
            old=old,
            new=new,
        )

        return store_replacement
