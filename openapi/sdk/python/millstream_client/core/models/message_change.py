from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="MessageChange")


@_attrs_define
class MessageChange:
    """Changes to a message.

    The body (`body`, text or JSON, or `body_base64`) can change while the message is waiting, parked or dead-lettered.
    The
    due time and the priority can change while it is waiting in a standard queue.

        Attributes:
            body (Any | Unset):
            body_base64 (None | str | Unset):
            delay_seconds (float | None | Unset): Delay from now until the message is due; 0: immediately.
            priority (int | None | Unset):
    """

    body: Any | Unset = UNSET
    body_base64: None | str | Unset = UNSET
    delay_seconds: float | None | Unset = UNSET
    priority: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        body = self.body

        body_base64: None | str | Unset
        if isinstance(self.body_base64, Unset):
            body_base64 = UNSET
        else:
            body_base64 = self.body_base64

        delay_seconds: float | None | Unset
        if isinstance(self.delay_seconds, Unset):
            delay_seconds = UNSET
        else:
            delay_seconds = self.delay_seconds

        priority: int | None | Unset
        if isinstance(self.priority, Unset):
            priority = UNSET
        else:
            priority = self.priority

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if body is not UNSET:
            field_dict["body"] = body
        if body_base64 is not UNSET:
            field_dict["body_base64"] = body_base64
        if delay_seconds is not UNSET:
            field_dict["delay_seconds"] = delay_seconds
        if priority is not UNSET:
            field_dict["priority"] = priority

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        body = d.pop("body", UNSET)

        def _parse_body_base64(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        body_base64 = _parse_body_base64(d.pop("body_base64", UNSET))

        def _parse_delay_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        delay_seconds = _parse_delay_seconds(d.pop("delay_seconds", UNSET))

        def _parse_priority(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        priority = _parse_priority(d.pop("priority", UNSET))

        message_change = cls(
            body=body,
            body_base64=body_base64,
            delay_seconds=delay_seconds,
            priority=priority,
        )

        return message_change
