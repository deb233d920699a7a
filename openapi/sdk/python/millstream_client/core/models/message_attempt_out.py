from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.consumer_identity import ConsumerIdentity


T = TypeVar("T", bound="MessageAttemptOut")


@_attrs_define
class MessageAttemptOut:
    """One delivery of a message, and how it ended.

    Attributes:
        number (int):
        received_at (datetime.datetime):
        ended_at (datetime.datetime | None): Null while the message is in flight.
        outcome (str): The event that ended it, such as `acknowledged`, `nacked` or `lease_ended`; or `in_flight`.
        consumer (ConsumerIdentity | None): Null if unknown, or if it has not received for a day.
        reason (str):
        details (str):
    """

    number: int
    received_at: datetime.datetime
    ended_at: datetime.datetime | None
    outcome: str
    consumer: ConsumerIdentity | None
    reason: str
    details: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.consumer_identity import ConsumerIdentity  # noqa: PLC0415

        number = self.number

        received_at = self.received_at.isoformat()

        ended_at: None | str
        if isinstance(self.ended_at, datetime.datetime):
            ended_at = self.ended_at.isoformat()
        else:
            ended_at = self.ended_at

        outcome = self.outcome

        consumer: dict[str, Any] | None
        if isinstance(self.consumer, ConsumerIdentity):
            consumer = self.consumer.to_dict()
        else:
            consumer = self.consumer

        reason = self.reason

        details = self.details

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "number": number,
                "received_at": received_at,
                "ended_at": ended_at,
                "outcome": outcome,
                "consumer": consumer,
                "reason": reason,
                "details": details,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.consumer_identity import ConsumerIdentity  # noqa: PLC0415

        d = dict(src_dict)
        number = d.pop("number")

        received_at = datetime.datetime.fromisoformat(d.pop("received_at"))

        def _parse_ended_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                ended_at_type_0 = datetime.datetime.fromisoformat(data)

                return ended_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        ended_at = _parse_ended_at(d.pop("ended_at"))

        outcome = d.pop("outcome")

        def _parse_consumer(data: object) -> ConsumerIdentity | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                consumer_type_0 = ConsumerIdentity.from_dict(data)

                return consumer_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ConsumerIdentity | None, data)

        consumer = _parse_consumer(d.pop("consumer"))

        reason = d.pop("reason")

        details = d.pop("details")

        message_attempt_out = cls(
            number=number,
            received_at=received_at,
            ended_at=ended_at,
            outcome=outcome,
            consumer=consumer,
            reason=reason,
            details=details,
        )

        message_attempt_out.additional_properties = d
        return message_attempt_out

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
