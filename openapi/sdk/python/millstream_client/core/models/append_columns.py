from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="AppendColumns")


@_attrs_define
class AppendColumns:
    """Bodies, and one partition key per body or none.

    Bodies are base64 in JSON and bin in MessagePack.

        Attributes:
            data (list[str]):
            keys (list[str] | Unset):
    """

    data: list[str]
    keys: list[str] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        data = self.data

        keys: list[str] | Unset = UNSET
        if not isinstance(self.keys, Unset):
            keys = self.keys

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "data": data,
            }
        )
        if keys is not UNSET:
            field_dict["keys"] = keys

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        data = cast(list[str], d.pop("data"))

        keys = cast(list[str], d.pop("keys", UNSET))

        append_columns = cls(
            data=data,
            keys=keys,
        )

        return append_columns
