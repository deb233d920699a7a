from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.bookmark_in_positions import BookmarkInPositions


T = TypeVar("T", bound="BookmarkIn")


@_attrs_define
class BookmarkIn:
    """Offsets to save; default: the group's current offsets.

    Attributes:
        positions (BookmarkInPositions | None | Unset): Next offset to read, by shard.
    """

    positions: BookmarkInPositions | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.bookmark_in_positions import BookmarkInPositions  # noqa: PLC0415

        positions: dict[str, Any] | None | Unset
        if isinstance(self.positions, Unset):
            positions = UNSET
        elif isinstance(self.positions, BookmarkInPositions):
            positions = self.positions.to_dict()
        else:
            positions = self.positions

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if positions is not UNSET:
            field_dict["positions"] = positions

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.bookmark_in_positions import BookmarkInPositions  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_positions(data: object) -> BookmarkInPositions | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                positions_type_0 = BookmarkInPositions.from_dict(data)

                return positions_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BookmarkInPositions | None | Unset, data)

        positions = _parse_positions(d.pop("positions", UNSET))

        bookmark_in = cls(
            positions=positions,
        )

        return bookmark_in
