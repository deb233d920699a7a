from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="OffsetIn")


@_attrs_define
class OffsetIn:
    """The next offset to read of a shard.

    Attributes:
        shard (int):
        offset (int):
    """

    shard: int
    offset: int

    def to_dict(self) -> dict[str, Any]:
        shard = self.shard

        offset = self.offset

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "shard": shard,
                "offset": offset,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        shard = d.pop("shard")

        offset = d.pop("offset")

        offset_in = cls(
            shard=shard,
            offset=offset,
        )

        return offset_in
