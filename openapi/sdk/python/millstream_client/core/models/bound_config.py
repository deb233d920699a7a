from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.bookmark_name import BookmarkName
    from ..models.bound_config_offsets import BoundConfigOffsets


T = TypeVar("T", bound="BoundConfig")


@_attrs_define
class BoundConfig:
    """A bound of the replayed range: exactly one of the three.

    Attributes:
        offsets (BoundConfigOffsets | None | Unset): Offsets by shard; shards that are not listed are not bounded.
        time (datetime.datetime | None | Unset): Start with the first record that arrived at or after this time.
        bookmark (BookmarkName | None | Unset):
    """

    offsets: BoundConfigOffsets | None | Unset = UNSET
    time: datetime.datetime | None | Unset = UNSET
    bookmark: BookmarkName | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.bookmark_name import BookmarkName  # noqa: PLC0415
        from ..models.bound_config_offsets import BoundConfigOffsets  # noqa: PLC0415

        offsets: dict[str, Any] | None | Unset
        if isinstance(self.offsets, Unset):
            offsets = UNSET
        elif isinstance(self.offsets, BoundConfigOffsets):
            offsets = self.offsets.to_dict()
        else:
            offsets = self.offsets

        time: None | str | Unset
        if isinstance(self.time, Unset):
            time = UNSET
        elif isinstance(self.time, datetime.datetime):
            time = self.time.isoformat()
        else:
            time = self.time

        bookmark: dict[str, Any] | None | Unset
        if isinstance(self.bookmark, Unset):
            bookmark = UNSET
        elif isinstance(self.bookmark, BookmarkName):
            bookmark = self.bookmark.to_dict()
        else:
            bookmark = self.bookmark

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if offsets is not UNSET:
            field_dict["offsets"] = offsets
        if time is not UNSET:
            field_dict["time"] = time
        if bookmark is not UNSET:
            field_dict["bookmark"] = bookmark

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.bookmark_name import BookmarkName  # noqa: PLC0415
        from ..models.bound_config_offsets import BoundConfigOffsets  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_offsets(data: object) -> BoundConfigOffsets | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                offsets_type_0 = BoundConfigOffsets.from_dict(data)

                return offsets_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BoundConfigOffsets | None | Unset, data)

        offsets = _parse_offsets(d.pop("offsets", UNSET))

        def _parse_time(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                time_type_0 = datetime.datetime.fromisoformat(data)

                return time_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        time = _parse_time(d.pop("time", UNSET))

        def _parse_bookmark(data: object) -> BookmarkName | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                bookmark_type_0 = BookmarkName.from_dict(data)

                return bookmark_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BookmarkName | None | Unset, data)

        bookmark = _parse_bookmark(d.pop("bookmark", UNSET))

        bound_config = cls(
            offsets=offsets,
            time=time,
            bookmark=bookmark,
        )

        return bound_config
