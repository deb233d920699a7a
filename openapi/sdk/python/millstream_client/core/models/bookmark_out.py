from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.bookmark_out_positions import BookmarkOutPositions


T = TypeVar("T", bound="BookmarkOut")


@_attrs_define
class BookmarkOut:
    """Named offsets of a group.

    Attributes:
        name (str):
        positions (BookmarkOutPositions):
        created_at (datetime.datetime):
    """

    name: str
    positions: BookmarkOutPositions
    created_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        positions = self.positions.to_dict()

        created_at = self.created_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "positions": positions,
                "created_at": created_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.bookmark_out_positions import BookmarkOutPositions  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        positions = BookmarkOutPositions.from_dict(d.pop("positions"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        bookmark_out = cls(
            name=name,
            positions=positions,
            created_at=created_at,
        )

        bookmark_out.additional_properties = d
        return bookmark_out

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
