from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Split")


@_attrs_define
class Split:
    """A shard to split: keys from `at_hash_key` go to the second half; default: its middle.

    Attributes:
        shard (int):
        at_hash_key (None | str | Unset):
    """

    shard: int
    at_hash_key: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        shard = self.shard

        at_hash_key: None | str | Unset
        if isinstance(self.at_hash_key, Unset):
            at_hash_key = UNSET
        else:
            at_hash_key = self.at_hash_key

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "shard": shard,
            }
        )
        if at_hash_key is not UNSET:
            field_dict["at_hash_key"] = at_hash_key

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        shard = d.pop("shard")

        def _parse_at_hash_key(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        at_hash_key = _parse_at_hash_key(d.pop("at_hash_key", UNSET))

        split = cls(
            shard=shard,
            at_hash_key=at_hash_key,
        )

        return split
