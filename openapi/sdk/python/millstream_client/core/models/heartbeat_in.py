from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="HeartbeatIn")


@_attrs_define
class HeartbeatIn:
    """The member's generation, and the shards that it still holds.

    Shards that are not listed can be reassigned.

        Attributes:
            generation (int | None | Unset):
            owned (list[int] | None | Unset):
    """

    generation: int | None | Unset = UNSET
    owned: list[int] | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        generation: int | None | Unset
        if isinstance(self.generation, Unset):
            generation = UNSET
        else:
            generation = self.generation

        owned: list[int] | None | Unset
        if isinstance(self.owned, Unset):
            owned = UNSET
        elif isinstance(self.owned, list):
            owned = self.owned

        else:
            owned = self.owned

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if generation is not UNSET:
            field_dict["generation"] = generation
        if owned is not UNSET:
            field_dict["owned"] = owned

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_generation(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        generation = _parse_generation(d.pop("generation", UNSET))

        def _parse_owned(data: object) -> list[int] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                owned_type_0 = cast(list[int], data)

                return owned_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[int] | None | Unset, data)

        owned = _parse_owned(d.pop("owned", UNSET))

        heartbeat_in = cls(
            generation=generation,
            owned=owned,
        )

        return heartbeat_in
