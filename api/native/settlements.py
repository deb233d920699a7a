"""Settlements of deliveries with their results and metrics, and replies, on the wire."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from api.native.fields import (
    body_from_json,
    body_from_msgpack,
    headers_from_json,
    rfc3339,
    show_body,
    show_headers,
    to_ms,
)
from api.native.messages import (
    AnyBody,
    Base64,
    ContentType,
    HeaderMap,
    NackDelaySeconds,
    RawBody,
    Time,
    VisibilitySeconds,
)
from api.native.problems import ItemError, item_error
from api.observability.metric_buffers import ProtocolMetrics, count_rejected
from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.names import check_name
from storage.domain.queues.message import SETTLED, SettleAction, Settled, Settlement
from storage.domain.requests.reply import NewReply, Reply, ReplyingSettlement

Reason = Annotated[str, Meta(max_length=limits.REASON_CHARACTERS_MAX)]
"""Reason of a nack or reject."""

Details = Annotated[
    str,
    Meta(
        max_length=limits.DETAILS_CHARACTERS_MAX,
        description="For nack and reject: details such as a stack trace.",
    ),
]
"""Details of a nack or reject."""

TimeoutSeconds = Annotated[
    float,
    Meta(
        ge=0.001,
        le=limits.REQUEST_TIMEOUT_MS_MAX // limits.SECOND_MS,
        description="Time until the deadline: no reply is accepted after it.",
    ),
]
RequestRepliesMax = Annotated[
    int, Meta(ge=1, le=limits.REPLIES_MAX, description="Number of replies that are accepted.")
]
ReplyTtlSeconds = Annotated[
    int,
    Meta(
        ge=1,
        le=limits.REPLY_TTL_MS_MAX // limits.SECOND_MS,
        description="Time after the deadline for which replies are retained.",
    ),
]


class SendReply(msgspec.Struct, kw_only=True, gc=False, forbid_unknown_fields=True):
    """A reply to a request: `body` or `body_base64`."""

    body: RawBody | UnsetType = UNSET
    body_base64: Base64 | UnsetType = UNSET
    headers: HeaderMap = {}
    content_type: ContentType = ""

    def to_domain(self) -> NewReply:
        """Convert the reply. Raises ValidationFailed, MessageTooLarge."""
        return self._with(*body_from_json(self.body, self.body_base64, "body"))

    def _with(self, body: bytes, own_type: str) -> NewReply:
        return NewReply(body, headers_from_json(self.headers), self.content_type or own_type)


class PackedReply(SendReply, kw_only=True, gc=False):
    """A reply in MessagePack, where a body may be bin."""

    body: Any = UNSET

    def to_domain(self) -> NewReply:
        """Convert the reply. Raises ValidationFailed, MessageTooLarge."""
        return self._with(*body_from_msgpack(self.body, self.body_base64, "body"))


class SettlementReply(SendReply, kw_only=True, gc=False):
    """A reply that is sent before its delivery is acknowledged."""

    request: Annotated[str, Meta(description="The `reply_to` of the message.")]


class PackedSettlementReply(PackedReply, kw_only=True, gc=False):
    """A reply with an acknowledgement in MessagePack, where a body may be bin."""

    request: str


def replying_settlement(
    receipt_handle: str, reply: SettlementReply | PackedSettlementReply
) -> ReplyingSettlement:
    """Return the acknowledgement with a reply. Raises ValidationFailed, MessageTooLarge."""
    check_name(reply.request)
    return ReplyingSettlement(
        receipt_handle, SettleAction.ACK, request=reply.request, reply=reply.to_domain()
    )


class ReplyOut(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """A reply, and when it was accepted."""

    body: AnyBody = UNSET
    body_base64: Base64 | UnsetType = UNSET
    content_type: str = ""
    headers: dict[str, str] = {}
    headers_base64: dict[str, str] = {}
    accepted_at: Time = msgspec.field(name="at")

    @classmethod
    def from_domain(cls, reply: Reply, binary: bool) -> "ReplyOut":
        """Convert a reply. `binary`: the answer is MessagePack, where the body is bin."""
        show: Callable[[bytes, str], Any] = _bare if binary else show_body
        body, encoded = show(reply.body, reply.content_type)
        texts, others = show_headers(reply.headers)
        return cls(
            body=body,
            body_base64=encoded,
            content_type=reply.content_type,
            headers=texts,
            headers_base64=others,
            accepted_at=rfc3339(reply.at_ms),
        )


class SettlementIn(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """Settlement of one delivery.

    ack: done. nack: failed, retry after `delay_seconds`, or after the queue's back-off. release: not tried, available again
    immediately. extend: in progress, hide it for `visibility_timeout_seconds` from now. reject: never deliver it again.
    """

    receipt_handle: str
    action: SettleAction
    delay_seconds: NackDelaySeconds | None = None
    visibility_timeout_seconds: VisibilitySeconds | None = None
    reason: Reason = ""
    details: Details = ""
    reply: Annotated[
        SettlementReply | None,
        Meta(
            description="For ack of a request: the reply, which is sent first. If none is accepted any more, the message is acknowledged "
            "and the result has a `reply_error`; if it fails otherwise, nothing happens."
        ),
    ] = None

    def to_domain(self) -> Settlement:
        """Convert the settlement. Raises ValidationFailed for missing or misplaced fields."""
        if self.reply is not None:
            return self._replying(self.reply)
        delay_s, timeout_s = self.delay_seconds, self.visibility_timeout_seconds
        if timeout_s is None and self.action is SettleAction.EXTEND:
            raise ValidationFailed.at(
                "/visibility_timeout_seconds", "Required to extend", "required"
            )
        return Settlement(
            self.receipt_handle,
            self.action,
            None if delay_s is None else to_ms(delay_s),
            0 if timeout_s is None else to_ms(timeout_s),
            self.reason,
            self.details,
        )

    def _replying(self, reply: SettlementReply | PackedSettlementReply) -> Settlement:
        if self.action is not SettleAction.ACK:
            raise ValidationFailed.at("/reply", "A reply requires the action ack", "conflict")
        return replying_settlement(self.receipt_handle, reply)


class PackedSettlement(SettlementIn, gc=False):
    """A settlement in MessagePack, where the body of a reply may be bin."""

    reply: PackedSettlementReply | None = None  # type: ignore[assignment]


class SettlementOrBatch(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A batch of settlements."""

    settlements: list[SettlementIn] | UnsetType = UNSET

    def to_domain(self) -> Settlement:
        """Raise ValidationFailed: a settlement outside a batch has no form."""
        raise ValidationFailed.at("/settlements", "'settlements' is required", "required")


class PackedSettlementOrBatch(SettlementOrBatch, kw_only=True):
    """A batch of settlements in MessagePack."""

    settlements: list[PackedSettlement] | UnsetType = UNSET  # type: ignore[assignment]


class Settle(msgspec.Struct, forbid_unknown_fields=True):
    """Settlements of deliveries of one queue, each with its own result."""

    settlements: Annotated[
        list[SettlementIn], Meta(min_length=1, max_length=limits.SETTLEMENTS_MAX)
    ]


class SettledOut(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """Result of one settlement: `ok`, or `error` with the reason.

    `visible_at` is set when the delivery was extended or will be available again later.
    """

    status: str
    visible_at: Time | UnsetType = UNSET
    error: ItemError | UnsetType = UNSET
    reply_error: Annotated[
        ItemError | UnsetType,
        Meta(description="The message is acknowledged, and its reply was refused."),
    ] = UNSET


class SettleResults(msgspec.Struct):
    """One result for each settlement, in their order."""

    results: list[SettledOut]


_OK = SettledOut(status="ok")


def settle_results(settled: Sequence[Settled]) -> list[SettledOut]:
    """Convert the results of a call."""
    return [_OK if one is SETTLED else _settled_out(one) for one in settled]


def _settled_out(settled: Settled) -> SettledOut:
    if settled.error is not None:
        return SettledOut(status="error", error=item_error(settled.error))
    if settled.reply_error is not None:
        return SettledOut(status="ok", reply_error=item_error(settled.reply_error))
    if settled.visible_at_ms is not None:
        return SettledOut(status="ok", visible_at=rfc3339(settled.visible_at_ms))
    return _OK


def count_settled(
    metrics: ProtocolMetrics, settlements: Sequence[Settlement], settled: Sequence[Settled]
) -> None:
    """Count accepted and refused settlements."""
    accepted: dict[SettleAction, int] = {}
    for settlement, answer in zip(settlements, settled, strict=True):
        if answer.error is None:
            accepted[settlement.action] = accepted.get(settlement.action, 0) + 1
        else:
            count_rejected(answer.error)
    for action, count in accepted.items():
        metrics.settled(action, count)


def _bare(body: bytes, _: str) -> tuple[bytes, UnsetType]:
    return body, UNSET
