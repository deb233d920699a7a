"""Results of settlements: their wire form and metrics."""

from collections.abc import Sequence

from api.native.fields import rfc3339
from api.native.messages import SettledOut
from api.native.problems import item_error
from api.observability.metric_buffers import ProtocolMetrics, count_rejected
from storage.domain.queues.message import SettleAction, Settled, Settlement

_OK = SettledOut(status="ok")


def settled_out(settled: Settled) -> SettledOut:
    """Convert the result of one settlement."""
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
