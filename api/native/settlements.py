"""Settlements of deliveries on the wire, their results and metrics."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from api.native.fields import rfc3339, to_ms
from api.native.messages import NackDelaySeconds, Time, VisibilitySeconds
from api.native.problems import ItemError, item_error
from api.observability.metric_buffers import ProtocolMetrics, count_rejected
from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.queues.message import SETTLED, SettleAction, Settled, Settlement

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

    def to_domain(self) -> Settlement:
        """Convert the settlement. Raises ValidationFailed for an extension without a duration."""
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


class SettlementOrBatch(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A batch of settlements."""

    settlements: list[SettlementIn] | UnsetType = UNSET

    def to_domain(self) -> Settlement:
        """Raise ValidationFailed: a settlement outside a batch has no form."""
        raise ValidationFailed.at("/settlements", "'settlements' is required", "required")


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
