from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.settle_action import SettleAction
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.settlement_reply import SettlementReply


T = TypeVar("T", bound="SettlementIn")


@_attrs_define
class SettlementIn:
    """Settlement of one delivery.

    ack: done. nack: failed, retry after `delay_seconds`, or after the queue's back-off. release: not tried, available
    again
    immediately. extend: in progress, hide it for `visibility_timeout_seconds` from now. reject: never deliver it again.

        Attributes:
            receipt_handle (str):
            action (SettleAction): Action of a consumer on a delivery.

                ack: done. nack: it failed; retry after a delay. release: not attempted; ready again immediately,
                without counting a failure. extend: still being processed; hide it for the given visibility timeout
                from now. reject: never deliver it again.
            delay_seconds (float | None | Unset):
            visibility_timeout_seconds (float | None | Unset):
            reason (str | Unset):  Default: ''.
            details (str | Unset): For nack and reject: details such as a stack trace. Default: ''.
            reply (None | SettlementReply | Unset): For ack of a request: the reply, which is sent first. If none is
                accepted any more, the message is acknowledged and the result has a `reply_error`; if it fails otherwise,
                nothing happens.
    """

    receipt_handle: str
    action: SettleAction
    delay_seconds: float | None | Unset = UNSET
    visibility_timeout_seconds: float | None | Unset = UNSET
    reason: str | Unset = ""
    details: str | Unset = ""
    reply: None | SettlementReply | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.settlement_reply import SettlementReply  # noqa: PLC0415

        receipt_handle = self.receipt_handle

        action = self.action.value

        delay_seconds: float | None | Unset
        if isinstance(self.delay_seconds, Unset):
            delay_seconds = UNSET
        else:
            delay_seconds = self.delay_seconds

        visibility_timeout_seconds: float | None | Unset
        if isinstance(self.visibility_timeout_seconds, Unset):
            visibility_timeout_seconds = UNSET
        else:
            visibility_timeout_seconds = self.visibility_timeout_seconds

        reason = self.reason

        details = self.details

        reply: dict[str, Any] | None | Unset
        if isinstance(self.reply, Unset):
            reply = UNSET
        elif isinstance(self.reply, SettlementReply):
            reply = self.reply.to_dict()
        else:
            reply = self.reply

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "receipt_handle": receipt_handle,
                "action": action,
            }
        )
        if delay_seconds is not UNSET:
            field_dict["delay_seconds"] = delay_seconds
        if visibility_timeout_seconds is not UNSET:
            field_dict["visibility_timeout_seconds"] = visibility_timeout_seconds
        if reason is not UNSET:
            field_dict["reason"] = reason
        if details is not UNSET:
            field_dict["details"] = details
        if reply is not UNSET:
            field_dict["reply"] = reply

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.settlement_reply import SettlementReply  # noqa: PLC0415

        d = dict(src_dict)
        receipt_handle = d.pop("receipt_handle")

        action = SettleAction(d.pop("action"))

        def _parse_delay_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        delay_seconds = _parse_delay_seconds(d.pop("delay_seconds", UNSET))

        def _parse_visibility_timeout_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        visibility_timeout_seconds = _parse_visibility_timeout_seconds(
            d.pop("visibility_timeout_seconds", UNSET)
        )

        reason = d.pop("reason", UNSET)

        details = d.pop("details", UNSET)

        def _parse_reply(data: object) -> None | SettlementReply | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                reply_type_0 = SettlementReply.from_dict(data)

                return reply_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SettlementReply | Unset, data)

        reply = _parse_reply(d.pop("reply", UNSET))

        settlement_in = cls(
            receipt_handle=receipt_handle,
            action=action,
            delay_seconds=delay_seconds,
            visibility_timeout_seconds=visibility_timeout_seconds,
            reason=reason,
            details=details,
            reply=reply,
        )

        return settlement_in
