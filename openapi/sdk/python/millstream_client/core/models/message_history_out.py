from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.message_attempt_out import MessageAttemptOut
    from ..models.message_event_out import MessageEventOut


T = TypeVar("T", bound="MessageHistoryOut")


@_attrs_define
class MessageHistoryOut:
    """History of a message, oldest event first.

    Attributes:
        id (str): As requested.
        offset (int):
        state (str): State after the last change: ready, delayed, in_flight, dead_lettered, moving or gone; empty if
            unknown.
        truncated (bool): Earlier events are missing because they expired or the history was disabled.
        attempts (list[MessageAttemptOut]): Deliveries among these events, oldest first.
        events (list[MessageEventOut]):
    """

    id: str
    offset: int
    state: str
    truncated: bool
    attempts: list[MessageAttemptOut]
    events: list[MessageEventOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        offset = self.offset

        state = self.state

        truncated = self.truncated

        attempts = []
        for attempts_item_data in self.attempts:
            attempts_item = attempts_item_data.to_dict()
            attempts.append(attempts_item)

        events = []
        for events_item_data in self.events:
            events_item = events_item_data.to_dict()
            events.append(events_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "offset": offset,
                "state": state,
                "truncated": truncated,
                "attempts": attempts,
                "events": events,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.message_attempt_out import MessageAttemptOut  # noqa: PLC0415
        from ..models.message_event_out import MessageEventOut  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        offset = d.pop("offset")

        state = d.pop("state")

        truncated = d.pop("truncated")

        attempts = []
        _attempts = d.pop("attempts")
        for attempts_item_data in _attempts:
            attempts_item = MessageAttemptOut.from_dict(attempts_item_data)

            attempts.append(attempts_item)

        events = []
        _events = d.pop("events")
        for events_item_data in _events:
            events_item = MessageEventOut.from_dict(events_item_data)

            events.append(events_item)

        message_history_out = cls(
            id=id,
            offset=offset,
            state=state,
            truncated=truncated,
            attempts=attempts,
            events=events,
        )

        message_history_out.additional_properties = d
        return message_history_out

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
