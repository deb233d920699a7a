from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="MoveConfig")


@_attrs_define
class MoveConfig:
    """Target of the ready messages: `destination`, or the source queue of each message.

    Attributes:
        destination (None | str | Unset):
        per_second (int | None | Unset): null: unlimited.
    """

    destination: None | str | Unset = UNSET
    per_second: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        destination: None | str | Unset
        if isinstance(self.destination, Unset):
            destination = UNSET
        else:
            destination = self.destination

        per_second: int | None | Unset
        if isinstance(self.per_second, Unset):
            per_second = UNSET
        else:
            per_second = self.per_second

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if destination is not UNSET:
            field_dict["destination"] = destination
        if per_second is not UNSET:
            field_dict["per_second"] = per_second

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_destination(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        destination = _parse_destination(d.pop("destination", UNSET))

        def _parse_per_second(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        per_second = _parse_per_second(d.pop("per_second", UNSET))

        move_config = cls(
            destination=destination,
            per_second=per_second,
        )

        return move_config
