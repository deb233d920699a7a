from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="MirrorQueueOut")


@_attrs_define
class MirrorQueueOut:
    """Progress on a queue of the other deployment.

    Attributes:
        queue (str):
        next_offset (int): Offset there of the next message to copy.
        tip (int): Next offset to be sent there.
        lag_messages (int): Maximum number of messages that are not here yet, as of `checked_at`.
        lag_seconds (float): Maximum age of a record or message that is not here yet. It grows while the origin does not
            answer.
        copied (int): Number of messages that were copied.
        checked_at (datetime.datetime | None): When the origin last answered.
        failure (str): Why the last attempt failed; empty if it did not.
    """

    queue: str
    next_offset: int
    tip: int
    lag_messages: int
    lag_seconds: float
    copied: int
    checked_at: datetime.datetime | None
    failure: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        queue = self.queue

        next_offset = self.next_offset

        tip = self.tip

        lag_messages = self.lag_messages

        lag_seconds = self.lag_seconds

        copied = self.copied

        checked_at: None | str
        if isinstance(self.checked_at, datetime.datetime):
            checked_at = self.checked_at.isoformat()
        else:
            checked_at = self.checked_at

        failure = self.failure

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "queue": queue,
                "next_offset": next_offset,
                "tip": tip,
                "lag_messages": lag_messages,
                "lag_seconds": lag_seconds,
                "copied": copied,
                "checked_at": checked_at,
                "failure": failure,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        queue = d.pop("queue")

        next_offset = d.pop("next_offset")

        tip = d.pop("tip")

        lag_messages = d.pop("lag_messages")

        lag_seconds = d.pop("lag_seconds")

        copied = d.pop("copied")

        def _parse_checked_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                checked_at_type_0 = datetime.datetime.fromisoformat(data)

                return checked_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        checked_at = _parse_checked_at(d.pop("checked_at"))

        failure = d.pop("failure")

        mirror_queue_out = cls(
            queue=queue,
            next_offset=next_offset,
            tip=tip,
            lag_messages=lag_messages,
            lag_seconds=lag_seconds,
            copied=copied,
            checked_at=checked_at,
            failure=failure,
        )

        mirror_queue_out.additional_properties = d
        return mirror_queue_out

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
