"""First page: alerts and throughput."""

import asyncio
from collections.abc import Mapping, Sequence

from fastapi import APIRouter, Response

from api.admin.alerts import AlertInputs, find_alerts, is_stalled
from api.admin.error_pages import PageRoute
from api.admin.lists import PAGE_ROWS
from api.admin.rendering import Context
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action, Principal
from storage.domain.clock import SystemClock
from storage.domain.jobs import Job, JobState, WaitReason
from storage.domain.names import QueueName
from storage.domain.presence import ProcessSeen
from storage.domain.timeseries.samples import QueueSample, Samples
from storage.operations.job_waits import reasons_among

router = APIRouter(include_in_schema=False, route_class=PageRoute)

_EXAMINED_MAX = 20  # queues whose configuration and last hour are read, for each of two reasons
_CLOCK = SystemClock()


@router.get("/ui")
async def show_overview(context: Context) -> Response:
    """Show the start page: six numbers, what needs attention, and the state of the components."""
    checks = await context.request.app.state.readiness.checks()
    seen, hour = await asyncio.gather(
        _seen(context.storage, context.principal, checks), _hour(context.storage, context.principal)
    )
    return context.render(
        "overview.html",
        live=True,
        alerts=find_alerts(seen),
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


async def _seen(storage: Storage, principal: Principal, checks: Mapping[str, str]) -> AlertInputs:
    namespace, policy = principal.namespace, principal.policy
    queued = storage.jobs.list(namespace=namespace, state=JobState.QUEUED, limit=PAGE_ROWS)
    queues, groups, totals, webhooks, (jobs, queued_jobs), processes = await asyncio.gather(
        storage.time_series.latest_queues(namespace),
        storage.time_series.latest_groups(namespace),
        storage.time_series.latest_namespaces(),
        storage.webhooks.list_webhooks(namespace, limit=PAGE_ROWS),
        asyncio.gather(
            storage.jobs.list(namespace=namespace, state=JobState.FAILED, limit=PAGE_ROWS), queued
        ),
        storage.presence.processes(),
    )
    now_ms = _CLOCK.now_ms()
    mine = {name: queue for name, queue in queues.items() if policy.allows(Action.QUEUE_LIST, name)}
    examined = await storage.search.queues(namespace, _examined_queues(mine, now_ms))
    behind = sorted(groups, key=lambda name: -groups[name].lag_ms(now_ms))[:_EXAMINED_MAX]
    lagging = await storage.groups.with_names(namespace, behind)
    return AlertInputs(
        now_ms=now_ms,
        queues=mine,
        groups={
            name: group for name, group in groups.items() if policy.allows(Action.GROUP_LIST, name)
        },
        total=totals.get(""),
        died=await _died(storage, [queue.name for queue in examined.values()], mine),
        paused=frozenset(name for name, queue in examined.items() if queue.spec.paused),
        dead_letter_queues=await storage.search.dead_letter_queues(
            namespace, [name for name in examined if is_stalled(mine[name], now_ms)]
        ),
        paused_groups=frozenset(name for name, group in lagging.items() if group.spec.paused),
        webhooks=[one for one in webhooks if policy.allows(Action.WEBHOOK_LIST, one.name.name)],
        failed_jobs=_recent(jobs, now_ms) if policy.allows_any_name(Action.JOB_LIST) else [],
        unserved_jobs=_unserved(queued_jobs, processes, now_ms)
        if policy.allows_any_name(Action.JOB_LIST)
        else [],
        processes=processes,
        checks=checks,
        sees_deployment=policy.allows(Action.METRICS_READ, "*"),
    )


def _unserved(queued: Sequence[Job], processes: Sequence[ProcessSeen], now_ms: int) -> list[Job]:
    reasons = reasons_among(processes, queued, now_ms)
    return [
        job
        for job in queued
        if reasons[job.job_id] is WaitReason.WORKER
        and now_ms - job.run_after_ms > limits.JOB_CAPACITY_NOTED_MS
    ]


def _recent(jobs: Sequence[Job], now_ms: int) -> list[Job]:
    return [job for job in jobs if (job.ended_at_ms or now_ms) > now_ms - limits.DAY_MS]


def _examined_queues(queues: Mapping[str, QueueSample], now_ms: int) -> list[str]:
    """Return the queues with the most dead letters, and those with the oldest messages."""
    dead = sorted(queues, key=lambda name: -queues[name].dead_lettered)[:_EXAMINED_MAX]
    oldest = sorted(queues, key=lambda name: -queues[name].oldest_age_ms(now_ms))[:_EXAMINED_MAX]
    return list(dict.fromkeys((*dead, *oldest)))


async def _died(
    storage: Storage, names: Sequence[QueueName], queues: Mapping[str, QueueSample]
) -> dict[str, int]:
    """Return the growth of each queue's dead letters within the hour."""
    dead = [name for name in names if queues[name.name].dead_lettered]
    charts = await storage.time_series.of_queues(dead, limits.HOUR_MS)
    return {queue.name: _growth(chart, "dead_lettered") for queue, chart in charts.items()}


def _growth(chart: Samples, column: str) -> int:
    """Return the growth from the lowest sample to the last one.

    The first sample counts as growth where nothing was before it.
    """
    values = [value for value in chart.columns.get(column, ()) if value is not None]
    return round(values[-1] - min(values)) if values else 0


def _last(chart: Samples) -> dict[str, float]:
    """Return the last measured value of each column."""
    return {
        name: next(value for value in reversed(values) if value is not None)
        for name, values in chart.columns.items()
        if any(value is not None for value in values)
    }
