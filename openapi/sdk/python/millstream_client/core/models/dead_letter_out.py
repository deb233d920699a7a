from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.dead_letter_origin_out import DeadLetterOriginOut
    from ..models.dead_letter_out_headers import DeadLetterOutHeaders
    from ..models.dead_letter_out_headers_base_64 import DeadLetterOutHeadersBase64
    from ..models.last_receiver import LastReceiver


T = TypeVar("T", bound="DeadLetterOut")


@_attrs_define
class DeadLetterOut:
    """A message that was dead-lettered, with the reason.

    Attributes:
        id (str):
        offset (int):
        reason (str):
        sent_at (datetime.datetime):
        died_at (datetime.datetime):
        receive_count (int):
        failures (int):
        crash_count (int):
        body (Any | Unset): A string is stored as UTF-8 text, any other value as compact JSON.
        body_base64 (str | Unset): Bytes in standard base64.
        content_type (str | Unset):  Default: ''.
        headers (DeadLetterOutHeaders | Unset):
        headers_base64 (DeadLetterOutHeadersBase64 | Unset):
        group (str | Unset):  Default: ''.
        receives (int | Unset): Former name of `receive_count`, which replaces it.
        crashes (int | Unset): Former name of `crash_count`, which replaces it.
        last_failure_reason (str | Unset): Reason of the last nack or reject, if it is not the reason. Default: ''.
        details (str | Unset): Details of the last nack or reject: a stack trace, or the start of the response of a
            webhook's receiver. Default: ''.
        response (str | Unset): Former name of `details`, which replaces it. Default: ''.
        last_received_by (LastReceiver | Unset): The consumer that received a message last. A day later only its id is
            known.
        dead_letter (DeadLetterOriginOut | Unset): The source that gave up on the message, why, and after how many
            failures.
    """

    id: str
    offset: int
    reason: str
    sent_at: datetime.datetime
    died_at: datetime.datetime
    receive_count: int
    failures: int
    crash_count: int
    body: Any | Unset = UNSET
    body_base64: str | Unset = UNSET
    content_type: str | Unset = ""
    headers: DeadLetterOutHeaders | Unset = UNSET
    headers_base64: DeadLetterOutHeadersBase64 | Unset = UNSET
    group: str | Unset = ""
    receives: int | Unset = UNSET
    crashes: int | Unset = UNSET
    last_failure_reason: str | Unset = ""
    details: str | Unset = ""
    response: str | Unset = ""
    last_received_by: LastReceiver | Unset = UNSET
    dead_letter: DeadLetterOriginOut | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        offset = self.offset

        reason = self.reason

        sent_at = self.sent_at.isoformat()

        died_at = self.died_at.isoformat()

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

        receives = self.receives

        crashes = self.crashes

        last_failure_reason = self.last_failure_reason

        details = self.details

        response = self.response

        last_received_by: dict[str, Any] | Unset = UNSET
        if not isinstance(self.last_received_by, Unset):
            last_received_by = self.last_received_by.to_dict()

        dead_letter: dict[str, Any] | Unset = UNSET
        if not isinstance(self.dead_letter, Unset):
            dead_letter = self.dead_letter.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "offset": offset,
                "reason": reason,
                "sent_at": sent_at,
                "died_at": died_at,
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
        if receives is not UNSET:
            field_dict["receives"] = receives
        if crashes is not UNSET:
            field_dict["crashes"] = crashes
        if last_failure_reason is not UNSET:
            field_dict["last_failure_reason"] = last_failure_reason
        if details is not UNSET:
            field_dict["details"] = details
        if response is not UNSET:
            field_dict["response"] = response
        if last_received_by is not UNSET:
            field_dict["last_received_by"] = last_received_by
        if dead_letter is not UNSET:
            field_dict["dead_letter"] = dead_letter

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.dead_letter_origin_out import DeadLetterOriginOut  # noqa: PLC0415
        from ..models.dead_letter_out_headers import DeadLetterOutHeaders  # noqa: PLC0415
        from ..models.dead_letter_out_headers_base_64 import DeadLetterOutHeadersBase64  # noqa: PLC0415
        from ..models.last_receiver import LastReceiver  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        offset = d.pop("offset")

        reason = d.pop("reason")

        sent_at = datetime.datetime.fromisoformat(d.pop("sent_at"))

        died_at = datetime.datetime.fromisoformat(d.pop("died_at"))

        receive_count = d.pop("receive_count")

        failures = d.pop("failures")

        crash_count = d.pop("crash_count")

        body = d.pop("body", UNSET)

        body_base64 = d.pop("body_base64", UNSET)

        content_type = d.pop("content_type", UNSET)

        _headers = d.pop("headers", UNSET)
        headers: DeadLetterOutHeaders | Unset
        if isinstance(_headers, Unset):
            headers = UNSET
        else:
            headers = DeadLetterOutHeaders.from_dict(_headers)

        _headers_base64 = d.pop("headers_base64", UNSET)
        headers_base64: DeadLetterOutHeadersBase64 | Unset
        if isinstance(_headers_base64, Unset):
            headers_base64 = UNSET
        else:
            headers_base64 = DeadLetterOutHeadersBase64.from_dict(_headers_base64)

        group = d.pop("group", UNSET)

        receives = d.pop("receives", UNSET)

        crashes = d.pop("crashes", UNSET)

        last_failure_reason = d.pop("last_failure_reason", UNSET)

        details = d.pop("details", UNSET)

        response = d.pop("response", UNSET)

        _last_received_by = d.pop("last_received_by", UNSET)
        last_received_by: LastReceiver | Unset
        if isinstance(_last_received_by, Unset):
            last_received_by = UNSET
        else:
            last_received_by = LastReceiver.from_dict(_last_received_by)

        _dead_letter = d.pop("dead_letter", UNSET)
        dead_letter: DeadLetterOriginOut | Unset
        if isinstance(_dead_letter, Unset):
            dead_letter = UNSET
        else:
            dead_letter = DeadLetterOriginOut.from_dict(_dead_letter)

        dead_letter_out = cls(
            id=id,
            offset=offset,
            reason=reason,
            sent_at=sent_at,
            died_at=died_at,
            receive_count=receive_count,
            failures=failures,
            crash_count=crash_count,
            body=body,
            body_base64=body_base64,
            content_type=content_type,
            headers=headers,
            headers_base64=headers_base64,
            group=group,
            receives=receives,
            crashes=crashes,
            last_failure_reason=last_failure_reason,
            details=details,
            response=response,
            last_received_by=last_received_by,
            dead_letter=dead_letter,
        )

        dead_letter_out.additional_properties = d
        return dead_letter_out

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
