from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="ParkedGroupOut")


@_attrs_define
class ParkedGroupOut:
    """A group whose messages are not delivered until it is resumed.

    Attributes:
        group (str):
        parked_at (datetime.datetime):
        reason (str):
        poison_offset (int | None): Offset of the failing message; null if the group was paused manually.
        messages (int): Number of waiting messages.
        first_offset (int | None): The first of the waiting messages.
        state (Literal['parked'] | Unset):  Default: 'parked'.
    """

    group: str
    parked_at: datetime.datetime
    reason: str
    poison_offset: int | None
    messages: int
    first_offset: int | None
    state: Literal["parked"] | Unset = "parked"
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        group = self.group

        parked_at = self.parked_at.isoformat()

        reason = self.reason

        poison_offset: int | None
        poison_offset = self.poison_offset

        messages = self.messages

        first_offset: int | None
        first_offset = self.first_offset

        state = self.state

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "group": group,
                "parked_at": parked_at,
                "reason": reason,
                "poison_offset": poison_offset,
                "messages": messages,
                "first_offset": first_offset,
            }
        )
        if state is not UNSET:
            field_dict["state"] = state

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        group = d.pop("group")

        parked_at = datetime.datetime.fromisoformat(d.pop("parked_at"))

        reason = d.pop("reason")

        def _parse_poison_offset(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        poison_offset = _parse_poison_offset(d.pop("poison_offset"))

        messages = d.pop("messages")

        def _parse_first_offset(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        first_offset = _parse_first_offset(d.pop("first_offset"))

        state = cast(Literal["parked"] | Unset, d.pop("state", UNSET))
        if state != "parked" and not isinstance(state, Unset):
            raise ValueError(f"state must match const 'parked', got '{state}'")

        parked_group_out = cls(
            group=group,
            parked_at=parked_at,
            reason=reason,
            poison_offset=poison_offset,
            messages=messages,
            first_offset=first_offset,
            state=state,
        )

        parked_group_out.additional_properties = d
        return parked_group_out

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
