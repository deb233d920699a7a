from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.dead_letter_origin_out import DeadLetterOriginOut
    from ..models.received_message_out_headers import ReceivedMessageOutHeaders
    from ..models.received_message_out_headers_base_64 import (
        ReceivedMessageOutHeadersBase64,
    )


T = TypeVar("T", bound="ReceivedMessageOut")


@_attrs_define
class ReceivedMessageOut:
    """One delivery, leased to the consumer until `visible_at`.

    Attributes:
        id (str):
        receipt_handle (str):
        offset (int):
        sent_at (datetime.datetime):
        first_received_at (datetime.datetime):
        visible_at (datetime.datetime):
        receive_count (int):
        failures (int):
        crash_count (int):
        body (Any | Unset): A string is stored as UTF-8 text, any other value as compact JSON.
        body_base64 (str | Unset): Bytes in standard base64.
        content_type (str | Unset):  Default: ''.
        headers (ReceivedMessageOutHeaders | Unset):
        headers_base64 (ReceivedMessageOutHeadersBase64 | Unset):
        group (str | Unset):  Default: ''.
        dedup_id (str | Unset):  Default: ''.
        receives (int | Unset): Former name of `receive_count`, which replaces it.
        crashes (int | Unset): Former name of `crash_count`, which replaces it.
        topic (str | Unset): Topic that it was published to. Default: ''.
        subject (str | Unset): Subject in the topic. Default: ''.
        route (str | Unset): Route of the topic that brought it. Default: ''.
        key (str | Unset): Key in the topic; in a FIFO queue it is the `group`. Default: ''.
        reply_to (str | Unset): If it is a request: the `request` that a reply to it names. Default: ''.
        dead_letter_source (str | Unset):  Default: ''.
        dead_letter (DeadLetterOriginOut | Unset): The source that gave up on the message, why, and after how many
            failures.
    """

    id: str
    receipt_handle: str
    offset: int
    sent_at: datetime.datetime
    first_received_at: datetime.datetime
    visible_at: datetime.datetime
    receive_count: int
    failures: int
    crash_count: int
    body: Any | Unset = UNSET
    body_base64: str | Unset = UNSET
    content_type: str | Unset = ""
    headers: ReceivedMessageOutHeaders | Unset = UNSET
    headers_base64: ReceivedMessageOutHeadersBase64 | Unset = UNSET
    group: str | Unset = ""
    dedup_id: str | Unset = ""
    receives: int | Unset = UNSET
    crashes: int | Unset = UNSET
    topic: str | Unset = ""
    subject: str | Unset = ""
    route: str | Unset = ""
    key: str | Unset = ""
    reply_to: str | Unset = ""
    dead_letter_source: str | Unset = ""
    dead_letter: DeadLetterOriginOut | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        receipt_handle = self.receipt_handle

        offset = self.offset

        sent_at = self.sent_at.isoformat()

        first_received_at = self.first_received_at.isoformat()

        visible_at = self.visible_at.isoformat()

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

        receives = self.receives

        crashes = self.crashes

        topic = self.topic

        subject = self.subject

        route = self.route

        key = self.key

        reply_to = self.reply_to

        dead_letter_source = self.dead_letter_source

        dead_letter: dict[str, Any] | Unset = UNSET
        if not isinstance(self.dead_letter, Unset):
            dead_letter = self.dead_letter.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "receipt_handle": receipt_handle,
                "offset": offset,
                "sent_at": sent_at,
                "first_received_at": first_received_at,
                "visible_at": visible_at,
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
        if receives is not UNSET:
            field_dict["receives"] = receives
        if crashes is not UNSET:
            field_dict["crashes"] = crashes
        if topic is not UNSET:
            field_dict["topic"] = topic
        if subject is not UNSET:
            field_dict["subject"] = subject
        if route is not UNSET:
            field_dict["route"] = route
        if key is not UNSET:
            field_dict["key"] = key
        if reply_to is not UNSET:
            field_dict["reply_to"] = reply_to
        if dead_letter_source is not UNSET:
            field_dict["dead_letter_source"] = dead_letter_source
        if dead_letter is not UNSET:
            field_dict["dead_letter"] = dead_letter

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.dead_letter_origin_out import DeadLetterOriginOut  # noqa: PLC0415
        from ..models.received_message_out_headers import ReceivedMessageOutHeaders  # noqa: PLC0415
        from ..models.received_message_out_headers_base_64 import (
            ReceivedMessageOutHeadersBase64,  # noqa: PLC0415
        )

        d = dict(src_dict)
        id = d.pop("id")

        receipt_handle = d.pop("receipt_handle")

        offset = d.pop("offset")

        sent_at = datetime.datetime.fromisoformat(d.pop("sent_at"))

        first_received_at = datetime.datetime.fromisoformat(d.pop("first_received_at"))

        visible_at = datetime.datetime.fromisoformat(d.pop("visible_at"))

        receive_count = d.pop("receive_count")

        failures = d.pop("failures")

        crash_count = d.pop("crash_count")

        body = d.pop("body", UNSET)

        body_base64 = d.pop("body_base64", UNSET)

        content_type = d.pop("content_type", UNSET)

        _headers = d.pop("headers", UNSET)
        headers: ReceivedMessageOutHeaders | Unset
        if isinstance(_headers, Unset):
            headers = UNSET
        else:
            headers = ReceivedMessageOutHeaders.from_dict(_headers)

        _headers_base64 = d.pop("headers_base64", UNSET)
        headers_base64: ReceivedMessageOutHeadersBase64 | Unset
        if isinstance(_headers_base64, Unset):
            headers_base64 = UNSET
        else:
            headers_base64 = ReceivedMessageOutHeadersBase64.from_dict(_headers_base64)

        group = d.pop("group", UNSET)

        dedup_id = d.pop("dedup_id", UNSET)

        receives = d.pop("receives", UNSET)

        crashes = d.pop("crashes", UNSET)

        topic = d.pop("topic", UNSET)

        subject = d.pop("subject", UNSET)

        route = d.pop("route", UNSET)

        key = d.pop("key", UNSET)

        reply_to = d.pop("reply_to", UNSET)

        dead_letter_source = d.pop("dead_letter_source", UNSET)

        _dead_letter = d.pop("dead_letter", UNSET)
        dead_letter: DeadLetterOriginOut | Unset
        if isinstance(_dead_letter, Unset):
            dead_letter = UNSET
        else:
            dead_letter = DeadLetterOriginOut.from_dict(_dead_letter)

        received_message_out = cls(
            id=id,
            receipt_handle=receipt_handle,
            offset=offset,
            sent_at=sent_at,
            first_received_at=first_received_at,
            visible_at=visible_at,
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
            receives=receives,
            crashes=crashes,
            topic=topic,
            subject=subject,
            route=route,
            key=key,
            reply_to=reply_to,
            dead_letter_source=dead_letter_source,
            dead_letter=dead_letter,
        )

        received_message_out.additional_properties = d
        return received_message_out

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
