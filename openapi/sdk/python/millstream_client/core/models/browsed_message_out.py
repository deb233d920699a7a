from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.message_state import MessageState
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.browsed_message_out_headers import BrowsedMessageOutHeaders
    from ..models.browsed_message_out_headers_base_64 import (
        BrowsedMessageOutHeadersBase64,
    )
    from ..models.dead_letter_origin_out import DeadLetterOriginOut
    from ..models.last_receiver import LastReceiver


T = TypeVar("T", bound="BrowsedMessageOut")


@_attrs_define
class BrowsedMessageOut:
    """A message as stored in its queue; `due_at` is when its delay or its delivery ends.

    Attributes:
        id (str):
        offset (int):
        state (MessageState): State of a message that can be browsed; dead letters have a separate list.
        sent_at (datetime.datetime):
        receive_count (int):
        failures (int):
        crash_count (int):
        body (Any | Unset): A string is stored as UTF-8 text, any other value as compact JSON.
        body_base64 (str | Unset): Bytes in standard base64.
        content_type (str | Unset):  Default: ''.
        headers (BrowsedMessageOutHeaders | Unset):
        headers_base64 (BrowsedMessageOutHeadersBase64 | Unset):
        group (str | Unset):  Default: ''.
        dedup_id (str | Unset):  Default: ''.
        due_at (datetime.datetime | Unset):
        receives (int | Unset): Former name of `receive_count`, which replaces it.
        crashes (int | Unset): Former name of `crash_count`, which replaces it.
        first_received_at (datetime.datetime | Unset):
        last_received_by (LastReceiver | Unset): The consumer that received a message last. A day later only its id is
            known.
        dead_letter_source (str | Unset):  Default: ''.
        dead_letter (DeadLetterOriginOut | Unset): The source that gave up on the message, why, and after how many
            failures.
    """

    id: str
    offset: int
    state: MessageState
    sent_at: datetime.datetime
    receive_count: int
    failures: int
    crash_count: int
    body: Any | Unset = UNSET
    body_base64: str | Unset = UNSET
    content_type: str | Unset = ""
    headers: BrowsedMessageOutHeaders | Unset = UNSET
    headers_base64: BrowsedMessageOutHeadersBase64 | Unset = UNSET
    group: str | Unset = ""
    dedup_id: str | Unset = ""
    due_at: datetime.datetime | Unset = UNSET
    receives: int | Unset = UNSET
    crashes: int | Unset = UNSET
    first_received_at: datetime.datetime | Unset = UNSET
    last_received_by: LastReceiver | Unset = UNSET
    dead_letter_source: str | Unset = ""
    dead_letter: DeadLetterOriginOut | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        offset = self.offset

        state = self.state.value

        sent_at = self.sent_at.isoformat()

        receive_count = self.receive_count

        failures = self.failures

        crash_count = self.crash_count

        body = self.body

        body_base64 = self.body_base64

        content_type = self.content_type

        headers: dict[str, Any] | Unset = UNSET
        if not isinstance(self.headers, Unset):
            headers = self.headers.to_dict()

        headers_base64: dict[str, Any] | Unset = UNSET
        if not isinstance(self.headers_base64, Unset):
            headers_base64 = self.headers_base64.to_dict()

        group = self.group

        dedup_id = self.dedup_id

        due_at: str | Unset = UNSET
        if not isinstance(self.due_at, Unset):
            due_at = self.due_at.isoformat()

        receives = self.receives

        crashes = self.crashes

        first_received_at: str | Unset = UNSET
        if not isinstance(self.first_received_at, Unset):
            first_received_at = self.first_received_at.isoformat()

        last_received_by: dict[str, Any] | Unset = UNSET
        if not isinstance(self.last_received_by, Unset):
            last_received_by = self.last_received_by.to_dict()

        dead_letter_source = self.dead_letter_source

        dead_letter: dict[str, Any] | Unset = UNSET
        if not isinstance(self.dead_letter, Unset):
            dead_letter = self.dead_letter.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "offset": offset,
                "state": state,
                "sent_at": sent_at,
                "receive_count": receive_count,
                "failures": failures,
                "crash_count": crash_count,
            }
        )
        if body is not UNSET:
            field_dict["body"] = body
        if body_base64 is not UNSET:
            field_dict["body_base64"] = body_base64
        if content_type is not UNSET:
            field_dict["content_type"] = content_type
        if headers is not UNSET:
            field_dict["headers"] = headers
        if headers_base64 is not UNSET:
            field_dict["headers_base64"] = headers_base64
        if group is not UNSET:
            field_dict["group"] = group
        if dedup_id is not UNSET:
            field_dict["dedup_id"] = dedup_id
        if due_at is not UNSET:
            field_dict["due_at"] = due_at
        if receives is not UNSET:
            field_dict["receives"] = receives
        if crashes is not UNSET:
            field_dict["crashes"] = crashes
        if first_received_at is not UNSET:
            field_dict["first_received_at"] = first_received_at
        if last_received_by is not UNSET:
            field_dict["last_received_by"] = last_received_by
        if dead_letter_source is not UNSET:
            field_dict["dead_letter_source"] = dead_letter_source
        if dead_letter is not UNSET:
            field_dict["dead_letter"] = dead_letter

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.browsed_message_out_headers import BrowsedMessageOutHeaders  # noqa: PLC0415
        from ..models.browsed_message_out_headers_base_64 import (
            BrowsedMessageOutHeadersBase64,  # noqa: PLC0415
        )
        from ..models.dead_letter_origin_out import DeadLetterOriginOut  # noqa: PLC0415
        from ..models.last_receiver import LastReceiver  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        offset = d.pop("offset")

        state = MessageState(d.pop("state"))

        sent_at = datetime.datetime.fromisoformat(d.pop("sent_at"))

        receive_count = d.pop("receive_count")

        failures = d.pop("failures")

        crash_count = d.pop("crash_count")

        body = d.pop("body", UNSET)

        body_base64 = d.pop("body_base64", UNSET)

        content_type = d.pop("content_type", UNSET)

        _headers = d.pop("headers", UNSET)
        headers: BrowsedMessageOutHeaders | Unset
        if isinstance(_headers, Unset):
            headers = UNSET
        else:
            headers = BrowsedMessageOutHeaders.from_dict(_headers)

        _headers_base64 = d.pop("headers_base64", UNSET)
        headers_base64: BrowsedMessageOutHeadersBase64 | Unset
        if isinstance(_headers_base64, Unset):
            headers_base64 = UNSET
        else:
            headers_base64 = BrowsedMessageOutHeadersBase64.from_dict(_headers_base64)

        group = d.pop("group", UNSET)

        dedup_id = d.pop("dedup_id", UNSET)

        _due_at = d.pop("due_at", UNSET)
        due_at: datetime.datetime | Unset
        if isinstance(_due_at, Unset):
            due_at = UNSET
        else:
            due_at = datetime.datetime.fromisoformat(_due_at)

        receives = d.pop("receives", UNSET)

        crashes = d.pop("crashes", UNSET)

        _first_received_at = d.pop("first_received_at", UNSET)
        first_received_at: datetime.datetime | Unset
        if isinstance(_first_received_at, Unset):
            first_received_at = UNSET
        else:
            first_received_at = datetime.datetime.fromisoformat(_first_received_at)

        _last_received_by = d.pop("last_received_by", UNSET)
        last_received_by: LastReceiver | Unset
        if isinstance(_last_received_by, Unset):
            last_received_by = UNSET
        else:
            last_received_by = LastReceiver.from_dict(_last_received_by)

        dead_letter_source = d.pop("dead_letter_source", UNSET)

        _dead_letter = d.pop("dead_letter", UNSET)
        dead_letter: DeadLetterOriginOut | Unset
        if isinstance(_dead_letter, Unset):
            dead_letter = UNSET
        else:
            dead_letter = DeadLetterOriginOut.from_dict(_dead_letter)

        browsed_message_out = cls(
            id=id,
            offset=offset,
            state=state,
            sent_at=sent_at,
            receive_count=receive_count,
            failures=failures,
            crash_count=crash_count,
            body=body,
            body_base64=body_base64,
            content_type=content_type,
            headers=headers,
            headers_base64=headers_base64,
            group=group,
            dedup_id=dedup_id,
            due_at=due_at,
            receives=receives,
            crashes=crashes,
            first_received_at=first_received_at,
            last_received_by=last_received_by,
            dead_letter_source=dead_letter_source,
            dead_letter=dead_letter,
        )

        browsed_message_out.additional_properties = d
        return browsed_message_out

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
