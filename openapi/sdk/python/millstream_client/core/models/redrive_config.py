from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="RedriveConfig")


@_attrs_define
class RedriveConfig:
    """Dead letters to redrive: those that match all given conditions; default: all of them.

    Attributes:
        reason (str | Unset):  Default: ''.
        group (str | Unset):  Default: ''.
        messages (list[str] | None | Unset): Message ids or offsets. Default: all messages.
        messages_max (int | None | Unset): Cannot be combined with `per_second`.
        per_second (int | None | Unset): Messages per second; runs in the background as a move that can be cancelled.
    """

    reason: str | Unset = ""
    group: str | Unset = ""
    messages: list[str] | None | Unset = UNSET
    messages_max: int | None | Unset = UNSET
    per_second: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        reason = self.reason

        group = self.group

        messages: list[str] | None | Unset
        if isinstance(self.messages, Unset):
            messages = UNSET
        elif isinstance(self.messages, list):
            messages = self.messages

        else:
            messages = self.messages

        messages_max: int | None | Unset
        if isinstance(self.messages_max, Unset):
            messages_max = UNSET
        else:
            messages_max = self.messages_max

        per_second: int | None | Unset
        if isinstance(self.per_second, Unset):
            per_second = UNSET
        else:
            per_second = self.per_second

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if reason is not UNSET:
            field_dict["reason"] = reason
        if group is not UNSET:
            field_dict["group"] = group
        if messages is not UNSET:
            field_dict["messages"] = messages
        if messages_max is not UNSET:
            field_dict["messages_max"] = messages_max
        if per_second is not UNSET:
            field_dict["per_second"] = per_second

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        reason = d.pop("reason", UNSET)

        group = d.pop("group", UNSET)

        def _parse_messages(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                messages_type_0 = cast(list[str], data)

                return messages_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        messages = _parse_messages(d.pop("messages", UNSET))

        def _parse_messages_max(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        messages_max = _parse_messages_max(d.pop("messages_max", UNSET))

        def _parse_per_second(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        per_second = _parse_per_second(d.pop("per_second", UNSET))

        redrive_config = cls(
            reason=reason,
            group=group,
            messages=messages,
            messages_max=messages_max,
            per_second=per_second,
        )

        return redrive_config
