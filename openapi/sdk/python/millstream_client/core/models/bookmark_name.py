from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="BookmarkName")


@_attrs_define
class BookmarkName:
    """A bookmark of a consumer group that reads the source.

    Attributes:
        group (str):
        name (str):
    """

    group: str
    name: str

    def to_dict(self) -> dict[str, Any]:
        group = self.group

        name = self.name

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "group": group,
                "name": name,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        group = d.pop("group")

        name = d.pop("name")

        bookmark_name = cls(
            group=group,
            name=name,
        )

        return bookmark_name
