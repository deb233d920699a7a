from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Receive")


@_attrs_define
class Receive:
    """Receive options: maximum number of messages, wait, and visibility timeout.

    Attributes:
        messages_max (int | Unset):  Default: 1.
        wait_seconds (float | None | Unset): Time to wait for the first message.
        visibility_timeout_seconds (float | None | Unset):
        attempt_id (str | Unset): FIFO queues: retries with the same id return the same messages for five minutes.
            Default: ''.
    """

    messages_max: int | Unset = 1
    wait_seconds: float | None | Unset = UNSET
    visibility_timeout_seconds: float | None | Unset = UNSET
    attempt_id: str | Unset = ""

    def to_dict(self) -> dict[str, Any]:
        messages_max = self.messages_max

        wait_seconds: float | None | Unset
        if isinstance(self.wait_seconds, Unset):
            wait_seconds = UNSET
        else:
            wait_seconds = self.wait_seconds

        visibility_timeout_seconds: float | None | Unset
        if isinstance(self.visibility_timeout_seconds, Unset):
            visibility_timeout_seconds = UNSET
        else:
            visibility_timeout_seconds = self.visibility_timeout_seconds

        attempt_id = self.attempt_id

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if messages_max is not UNSET:
            field_dict["messages_max"] = messages_max
        if wait_seconds is not UNSET:
            field_dict["wait_seconds"] = wait_seconds
        if visibility_timeout_seconds is not UNSET:
            field_dict["visibility_timeout_seconds"] = visibility_timeout_seconds
        if attempt_id is not UNSET:
            field_dict["attempt_id"] = attempt_id

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        messages_max = d.pop("messages_max", UNSET)

        def _parse_wait_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        wait_seconds = _parse_wait_seconds(d.pop("wait_seconds", UNSET))

        def _parse_visibility_timeout_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        visibility_timeout_seconds = _parse_visibility_timeout_seconds(
            d.pop("visibility_timeout_seconds", UNSET)
        )

        attempt_id = d.pop("attempt_id", UNSET)

        receive = cls(
            messages_max=messages_max,
            wait_seconds=wait_seconds,
            visibility_timeout_seconds=visibility_timeout_seconds,
            attempt_id=attempt_id,
        )

        return receive
