from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="Truncate")


@_attrs_define
class Truncate:
    """The offset before which all records are deleted.

    Attributes:
        before (int):
    """

    before: int

    def to_dict(self) -> dict[str, Any]:
        before = self.before

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "before": before,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        before = d.pop("before")

        truncate = cls(
            before=before,
        )

        return truncate
