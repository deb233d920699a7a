from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.reset_to import ResetTo
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.reset_in_offsets import ResetInOffsets


T = TypeVar("T", bound="ResetIn")


@_attrs_define
class ResetIn:
    """The target of a reset.

    `time`, `offsets` and `bookmark` belong to the target of the same name.

        Attributes:
            to (ResetTo): Target of a reset of a group's offsets.
            shards (list[int] | None | Unset): Only these shards.
            time (datetime.datetime | None | Unset):
            offsets (None | ResetInOffsets | Unset): Next offset to read, by shard.
            bookmark (None | str | Unset):
            dry_run (bool | Unset): Return what would change without changing it. Default: False.
    """

    to: ResetTo
    shards: list[int] | None | Unset = UNSET
    time: datetime.datetime | None | Unset = UNSET
    offsets: None | ResetInOffsets | Unset = UNSET
    bookmark: None | str | Unset = UNSET
    dry_run: bool | Unset = False

    def to_dict(self) -> dict[str, Any]:
        from ..models.reset_in_offsets import ResetInOffsets  # noqa: PLC0415

        to = self.to.value

        shards: list[int] | None | Unset
        if isinstance(self.shards, Unset):
            shards = UNSET
        elif isinstance(self.shards, list):
            shards = self.shards

        else:
            shards = self.shards

        time: None | str | Unset
        if isinstance(self.time, Unset):
            time = UNSET
        elif isinstance(self.time, datetime.datetime):
            time = self.time.isoformat()
        else:
            time = self.time

        offsets: dict[str, Any] | None | Unset
        if isinstance(self.offsets, Unset):
            offsets = UNSET
        elif isinstance(self.offsets, ResetInOffsets):
            offsets = self.offsets.to_dict()
        else:
            offsets = self.offsets

        bookmark: None | str | Unset
        if isinstance(self.bookmark, Unset):
            bookmark = UNSET
        else:
            bookmark = self.bookmark

        dry_run = self.dry_run

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "to": to,
            }
        )
        if shards is not UNSET:
            field_dict["shards"] = shards
        if time is not UNSET:
            field_dict["time"] = time
        if offsets is not UNSET:
            field_dict["offsets"] = offsets
        if bookmark is not UNSET:
            field_dict["bookmark"] = bookmark
        if dry_run is not UNSET:
            field_dict["dry_run"] = dry_run

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reset_in_offsets import ResetInOffsets  # noqa: PLC0415

        d = dict(src_dict)
        to = ResetTo(d.pop("to"))

        def _parse_shards(data: object) -> list[int] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                shards_type_0 = cast(list[int], data)

                return shards_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[int] | None | Unset, data)

        shards = _parse_shards(d.pop("shards", UNSET))

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

        def _parse_offsets(data: object) -> None | ResetInOffsets | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                offsets_type_0 = ResetInOffsets.from_dict(data)

                return offsets_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ResetInOffsets | Unset, data)

        offsets = _parse_offsets(d.pop("offsets", UNSET))

        def _parse_bookmark(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        bookmark = _parse_bookmark(d.pop("bookmark", UNSET))

        dry_run = d.pop("dry_run", UNSET)

        reset_in = cls(
            to=to,
            shards=shards,
            time=time,
            offsets=offsets,
            bookmark=bookmark,
            dry_run=dry_run,
        )

        return reset_in
