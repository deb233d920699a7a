from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.message_event_type import MessageEventType
from ..types import UNSET, Unset

T = TypeVar("T", bound="MessageEventOut")


@_attrs_define
class MessageEventOut:
    """One state change of a message.

    Attributes:
        type_ (MessageEventType): A change of a message's state.
        at (datetime.datetime):
        until (datetime.datetime | None): End of the delay or of the delivery that the event started.
        number (int | None): For a delivery, its number. For a failure or an expired lease, the count.
        reason (str):
        details (str): Beginning of the details of a nack or reject: 1 KiB at most.
        what (MessageEventType | Unset): A change of a message's state.
    """

    type_: MessageEventType
    at: datetime.datetime
    until: datetime.datetime | None
    number: int | None
    reason: str
    details: str
    what: MessageEventType | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        type_ = self.type_.value

        at = self.at.isoformat()

        until: None | str
        if isinstance(self.until, datetime.datetime):
            until = self.until.isoformat()
        else:
            until = self.until

        number: int | None
        number = self.number

        reason = self.reason

        details = self.details

        what: str | Unset = UNSET
        if not isinstance(self.what, Unset):
            what = self.what.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "type": type_,
                "at": at,
                "until": until,
                "number": number,
                "reason": reason,
                "details": details,
            }
        )
        if what is not UNSET:
            field_dict["what"] = what

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        type_ = MessageEventType(d.pop("type"))

        at = datetime.datetime.fromisoformat(d.pop("at"))

        def _parse_until(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                until_type_0 = datetime.datetime.fromisoformat(data)

                return until_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        until = _parse_until(d.pop("until"))

        def _parse_number(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        number = _parse_number(d.pop("number"))

        reason = d.pop("reason")

        details = d.pop("details")

        _what = d.pop("what", UNSET)
        what: MessageEventType | Unset
        if isinstance(_what, Unset):
            what = UNSET
        else:
            what = MessageEventType(_what)

        message_event_out = cls(
            type_=type_,
            at=at,
            until=until,
            number=number,
            reason=reason,
            details=details,
            what=what,
        )

        message_event_out.additional_properties = d
        return message_event_out

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
