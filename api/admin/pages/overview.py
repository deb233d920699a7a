"""First page: alerts and throughput."""

import asyncio
from collections.abc import Sequence

from fastapi import APIRouter, Response

from api.admin.alerts.alert import AlertInputs
from api.admin.alerts.engine import MUTES_NAMED_MAX, AlertList, find_alerts, is_mutable
from api.admin.alerts.inputs import read_inputs
from api.admin.error_pages import PageRoute
from api.admin.rendering import Context
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action, Principal
from storage.domain.alerts.kinds import AlertKind
from storage.domain.clock import SystemClock
from storage.domain.errors import MillstreamError
from storage.domain.names import QueueName
from storage.domain.queues.policies import ParkedGroup
from storage.domain.timeseries.samples import Samples

router = APIRouter(include_in_schema=False, route_class=PageRoute)

ROWS_MAX = 4
"""Rows of alerts above the first chart; the others are folded."""

RESUMED_MAX = 50
"""Parked groups of a queue that one action resumes."""

MUTE_DURATIONS = (("1 hour", 3_600), ("1 day", 86_400), ("7 days", 604_800))
"""Durations of a mute, in seconds."""

_CLOCK = SystemClock()


@router.get("/ui")
async def show_overview(context: Context) -> Response:
    """Show the start page: six numbers, what needs attention, and the state of the components."""
    storage, principal = context.storage, context.principal
    checks = await context.request.app.state.readiness.checks()
    seen, mutes, hour = await asyncio.gather(
        read_inputs(storage, principal, checks, _CLOCK.now_ms()),
        storage.alert_mutes.list(principal.namespace),
        _hour(storage, principal),
    )
    alerts = find_alerts(
        seen, [mute for mute in mutes if context.may(Action.ALERT_LIST, mute.object)]
    )
    return context.render(
        "overview.html",
        live=True,
        alerts=alerts,
        muted_max=MUTES_NAMED_MAX,
        rows_max=ROWS_MAX,
        mutable=lambda alert: (
            is_mutable(alert) and context.may(Action.ALERT_MANAGE, alert.subject.object)
        ),
        durations=MUTE_DURATIONS,
        rate_max=limits.MOVE_RATE_MAX,
        parked=await _parked_groups(storage, principal, _with_parked(seen, alerts)),
        seen=seen,
        knows_all=context.may(Action.METRICS_READ, "*"),
        hour=hour.columns,
        last=_last(hour),
        empty=not seen.queues and not seen.groups and not _last(hour).get("streams", 0),
    )


async def _hour(storage: Storage, principal: Principal) -> Samples:
    """Return the namespace's totals; empty for callers who may not see all of it."""
    if not principal.policy.allows(Action.METRICS_READ, "*"):
        return Samples(step_ms=limits.SERIES_STEP_MS, start_ms=0, columns={})
    return await storage.time_series.of_namespace(principal.namespace, limits.HOUR_MS)


def _with_parked(seen: AlertInputs, alerts: AlertList) -> list[str]:
    """Return the queues with parked groups among those whose alerts are shown."""
    return [
        alert.subject.object
        for group in (*alerts.groups, *alerts.quiet)
        if group.kind in (AlertKind.QUEUE_PARKED, AlertKind.QUEUE_QUIET)
        for alert in group.alerts
        if seen.queues[alert.subject.object].sample.parked
    ]


async def _parked_groups(
    storage: Storage, principal: Principal, names: Sequence[str]
) -> dict[str, Sequence[ParkedGroup]]:
    """Return the parked groups that the rows' action resumes, by queue."""
    managed = [name for name in names if principal.policy.allows(Action.QUEUE_MANAGE, name)]
    pages = await asyncio.gather(
        *(_parked_in(storage, QueueName(name, principal.namespace)) for name in managed)
    )
    return dict(zip(managed, pages, strict=True))


async def _parked_in(storage: Storage, queue: QueueName) -> Sequence[ParkedGroup]:
    """Return the first parked groups of a queue; none if they cannot be read."""
    try:
        return await storage.parked_groups.browse(queue, groups_max=RESUMED_MAX)
    except MillstreamError:
        return ()


def _last(chart: Samples) -> dict[str, float]:
    """Return the last measured value of each column."""
    return {
        name: next(value for value in reversed(values) if value is not None)
        for name, values in chart.columns.items()
        if any(value is not None for value in values)
    }
