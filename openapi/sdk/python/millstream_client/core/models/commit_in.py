from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.offset_in import OffsetIn


T = TypeVar("T", bound="CommitIn")


@_attrs_define
class CommitIn:
    """A commit token, or offsets with their member and generation.

    Simple groups have no member; without a generation, commits are not fenced.

        Attributes:
            token (str | Unset):  Default: ''.
            member (str | Unset):  Default: ''.
            generation (int | None | Unset):
            offsets (list[OffsetIn] | Unset):
    """

    token: str | Unset = ""
    member: str | Unset = ""
    generation: int | None | Unset = UNSET
    offsets: list[OffsetIn] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        token = self.token

        member = self.member

        generation: int | None | Unset
        if isinstance(self.generation, Unset):
            generation = UNSET
        else:
            generation = self.generation

        offsets: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.offsets, Unset):
            offsets = []
            for offsets_item_data in self.offsets:
                offsets_item = offsets_item_data.to_dict()
                offsets.append(offsets_item)

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if token is not UNSET:
            field_dict["token"] = token
        if member is not UNSET:
            field_dict["member"] = member
        if generation is not UNSET:
            field_dict["generation"] = generation
        if offsets is not UNSET:
            field_dict["offsets"] = offsets

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.offset_in import OffsetIn  # noqa: PLC0415

        d = dict(src_dict)
        token = d.pop("token", UNSET)

        member = d.pop("member", UNSET)

        def _parse_generation(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        generation = _parse_generation(d.pop("generation", UNSET))

        _offsets = d.pop("offsets", UNSET)
        offsets: list[OffsetIn] | Unset = UNSET
        if _offsets is not UNSET:
            offsets = []
            for offsets_item_data in _offsets:
                offsets_item = OffsetIn.from_dict(offsets_item_data)

                offsets.append(offsets_item)

        commit_in = cls(
            token=token,
            member=member,
            generation=generation,
            offsets=offsets,
        )

        return commit_in
