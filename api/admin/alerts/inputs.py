"""Inputs of the alert rules: samples of all objects, more about the worst ones.

Configurations and histories are read for the EXAMINED_MAX objects with the most of each thing that alerts are about; the others
are judged by their samples.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from heapq import nlargest
from itertools import chain

from api.admin.alerts.alert import (
    WAITS_LONG_MS,
    AlertInputs,
    GroupFacts,
    QueueFacts,
    SourceFacts,
)
from api.admin.alerts.deployment import MEMORY_COLUMNS, is_memory_high
from api.admin.alerts.engine import NAMED_MAX
from api.admin.alerts.groups import GROUP_COLUMNS
from api.admin.alerts.queues import QUEUE_COLUMNS, is_stalled
from api.admin.lists import PAGE_ROWS
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action, Principal
from storage.domain.errors import MillstreamError, StreamNotFound
from storage.domain.jobs import Job, JobState, WaitReason
from storage.domain.names import ROUTE_PREFIX, GroupName, StreamName
from storage.domain.presence import ProcessSeen
from storage.domain.replication.replica_set import ReplicaSetStatus
from storage.domain.sources.source import InboundSource, SourceCounts
from storage.domain.streams.stream import Stream
from storage.domain.timeseries.history import NO_HISTORY
from storage.domain.timeseries.samples import GroupSample, QueueSample
from storage.domain.topics.report import RouteProgress
from storage.domain.webhooks import Webhook
from storage.operations.job_waits import reasons_among
from storage.views.engine import StoppedView
from storage.views.sinks import SinkBehind

EXAMINED_MAX = NAMED_MAX
"""Objects with the most of something, such as dead letters, of which more is read."""


async def read_inputs(
    storage: Storage, principal: Principal, checks: Mapping[str, str], now_ms: int
) -> AlertInputs:
    """Read what the rules look at, of what the viewer may see."""
    namespace, policy = principal.namespace, principal.policy
    sees_jobs = policy.allows_any_name(Action.JOB_LIST)
    (queues, groups), totals, webhooks, sources, (failed, queued), processes = await asyncio.gather(
        asyncio.gather(_queues(storage, principal, now_ms), _groups(storage, principal, now_ms)),
        storage.time_series.latest_namespaces(),
        _webhooks(storage, principal),
        _sources(storage, principal),
        _jobs(storage, namespace),
        storage.presence.processes(),
    )
    mirrors, (routes, has_topics), (stopped_views, sinks) = await asyncio.gather(
        storage.mirrors.lags(namespace), _routes(storage, principal), _views(storage, principal)
    )
    total = totals.get("")
    sees_deployment = policy.allows(Action.METRICS_READ, "*")
    store_history = NO_HISTORY
    if sees_deployment and is_memory_high(total):
        store_history = await storage.time_series.deployment_history(MEMORY_COLUMNS)
    return AlertInputs(
        now_ms=now_ms,
        queues=queues,
        groups=groups,
        total=total,
        webhooks=webhooks,
        sources=sources,
        mirrors=[one for one in mirrors if policy.allows(Action.MIRROR_LIST, one.name.name)],
        routes=routes,
        has_topics=has_topics,
        sinks=sinks,
        stopped_views=stopped_views,
        failed_jobs=_recent(failed, now_ms) if sees_jobs else [],
        unserved_jobs=_unserved(queued, processes, now_ms) if sees_jobs else [],
        processes=processes,
        checks=checks,
        sees_deployment=sees_deployment,
        store_history=store_history,
        stores=await _replica_set(storage) if sees_deployment else None,
    )


async def _replica_set(storage: Storage) -> ReplicaSetStatus | None:
    """Return the status of a replica set; None for one store, and without Postgres."""
    if storage.stores.is_replica_set:
        with suppress(MillstreamError):  # the failed check is an alert
            return await storage.stores.status()
    return None


async def _webhooks(storage: Storage, principal: Principal) -> list[Webhook]:
    """Return the first webhooks, and the first of those of routes."""
    list_webhooks, namespace = storage.webhooks.list_webhooks, principal.namespace
    lists = await asyncio.gather(
        list_webhooks(namespace, limit=PAGE_ROWS),
        list_webhooks(namespace, prefix=ROUTE_PREFIX, limit=PAGE_ROWS),
    )
    allows = principal.policy.allows
    return [one for one in chain(*lists) if allows(Action.WEBHOOK_LIST, one.name.name)]


# Queues


async def _queues(storage: Storage, principal: Principal, now_ms: int) -> dict[str, QueueFacts]:
    namespace = principal.namespace
    samples, caps = await asyncio.gather(
        storage.time_series.latest_queues(namespace), storage.search.queue_caps(namespace)
    )
    facts = {
        name: QueueFacts(sample, caps.get(name))
        for name, sample in samples.items()
        if principal.policy.allows(Action.QUEUE_LIST, name)
    }
    return facts | await _examined_queues(storage, namespace, facts, now_ms)


async def _examined_queues(
    storage: Storage, namespace: str, facts: Mapping[str, QueueFacts], now_ms: int
) -> dict[str, QueueFacts]:
    names = dict.fromkeys(chain.from_iterable(_worst_queues(facts, now_ms)))
    queues = await storage.search.queues(namespace, list(names))
    stalled = [name for name in queues if is_stalled(facts[name].sample, now_ms)]
    targets, histories = await asyncio.gather(
        storage.search.dead_letter_queues(namespace, stalled),
        storage.time_series.queue_histories(
            [queue.name for queue in queues.values()], QUEUE_COLUMNS
        ),
    )
    return {
        name: facts[name]._replace(
            spec=queue.spec,
            history=histories.get(queue.name, NO_HISTORY),
            is_dead_letter_queue=name in targets,
        )
        for name, queue in queues.items()
    }


def _worst_queues(facts: Mapping[str, QueueFacts], now_ms: int) -> Iterator[list[str]]:
    """Yield the queues with the most of what alerts are about; old messages expire soon."""
    measures: tuple[Callable[[QueueFacts], float], ...] = (
        lambda queue: queue.stored if queue.is_full else 0,
        lambda queue: _waiting_long(queue.sample, now_ms),
        lambda queue: queue.sample.parked,
        lambda queue: queue.dead_per_second,
        lambda queue: queue.sample.dead_lettered,
        lambda queue: queue.sample.oldest_age_ms(now_ms),
    )
    for measure in measures:
        values = {name: measure(queue) for name, queue in facts.items()}
        yield nlargest(
            EXAMINED_MAX, (name for name in values if values[name]), key=values.__getitem__
        )


def _waiting_long(queue: QueueSample, now_ms: int) -> int:
    return queue.ready if queue.oldest_age_ms(now_ms) >= WAITS_LONG_MS else 0


# Groups


async def _groups(storage: Storage, principal: Principal, now_ms: int) -> dict[str, GroupFacts]:
    namespace = principal.namespace
    samples = await storage.time_series.latest_groups(namespace)
    facts = {
        name: GroupFacts(sample)
        for name, sample in samples.items()
        if principal.policy.allows(Action.GROUP_LIST, name)
    }
    return facts | await _examined_groups(storage, namespace, facts, now_ms)


async def _examined_groups(
    storage: Storage, namespace: str, facts: Mapping[str, GroupFacts], now_ms: int
) -> dict[str, GroupFacts]:
    names = _lagging({name: one.sample for name, one in facts.items()}, now_ms)
    groups, stream_samples, histories = await asyncio.gather(
        storage.groups.with_names(namespace, names),
        storage.time_series.latest_streams(namespace),
        storage.time_series.group_histories(
            [GroupName(name, namespace) for name in names], GROUP_COLUMNS
        ),
    )
    streams = await _streams(storage, {group.stream for group in groups.values()})
    return {
        name: GroupFacts(
            facts[name].sample,
            group,
            streams.get(group.stream),
            stream_samples.get(group.spec.stream),
            histories.get(group.name, NO_HISTORY),
        )
        for name, group in groups.items()
    }


async def _streams(storage: Storage, names: Collection[StreamName]) -> dict[StreamName, Stream]:
    """Return those of the streams that exist, also views of queues."""
    streams = {}
    for name in names:
        with suppress(StreamNotFound):
            streams[name] = await storage.catalog.stream(name)
    return streams


def _lagging(groups: Mapping[str, GroupSample], now_ms: int) -> list[str]:
    """Return the groups that are furthest behind, in records or in time."""
    behind = [name for name, group in groups.items() if group.lag_ms(now_ms)]
    by_time = sorted(behind, key=lambda name: -groups[name].lag_ms(now_ms))
    by_records = sorted(behind, key=lambda name: -groups[name].lag_records)
    return list(dict.fromkeys((*by_time[:EXAMINED_MAX], *by_records[:EXAMINED_MAX])))


# Sources, routes, views and jobs


async def _sources(storage: Storage, principal: Principal) -> list[SourceFacts]:
    sources = await storage.sources.list_sources(principal.namespace, limit=PAGE_ROWS)
    visible = [one for one in sources if principal.policy.allows(Action.SOURCE_LIST, one.name.name)]
    return list(await asyncio.gather(*(_source(storage, source) for source in visible)))


async def _source(storage: Storage, source: InboundSource) -> SourceFacts:
    """Return a source with its counters, or without them if they cannot be read."""
    transfer = storage.source_transfer
    try:
        counts = await transfer.counts(source)
    except MillstreamError:
        counts = SourceCounts()
    return SourceFacts(source, counts, transfer.failure_of(source))


async def _routes(storage: Storage, principal: Principal) -> tuple[list[RouteProgress], bool]:
    """Return the routes that lag, and whether there are topics, for which a router is needed."""
    try:
        topics, routes = await asyncio.gather(
            storage.topics.list_topics(principal.namespace, limit=1),
            storage.topic_reports.lagging(principal.namespace),
        )
    except MillstreamError:  # the failed check is an alert
        return [], False
    allows = principal.policy.allows
    visible = [one for one in routes if allows(Action.TOPIC_LIST, one.route.name.topic.name)]
    return visible, bool(topics)


async def _views(
    storage: Storage, principal: Principal
) -> tuple[list[StoppedView], list[SinkBehind]]:
    """Return the views that have stopped, and the sinks that fail or are far behind."""
    try:
        stopped, sinks = await asyncio.gather(
            storage.views.stopped(principal.namespace),
            storage.view_sinks.behind(principal.namespace),
        )
    except MillstreamError:  # the failed check is an alert
        return [], []
    allows = principal.policy.allows
    return (
        [one for one in stopped if allows(Action.VIEW_LIST, one.view.name.name)],
        [one for one in sinks if allows(Action.VIEW_LIST, one.view.name)],
    )


async def _jobs(storage: Storage, namespace: str) -> tuple[Sequence[Job], Sequence[Job]]:
    """Return failed jobs and queued ones, the newest of each.

    Whoever made a call that failed knows it: its job is left out.
    """
    return await asyncio.gather(
        storage.jobs.failed(namespace, PAGE_ROWS),
        storage.jobs.list(namespace=namespace, state=JobState.QUEUED, limit=PAGE_ROWS),
    )


def _unserved(queued: Sequence[Job], processes: Sequence[ProcessSeen], now_ms: int) -> list[Job]:
    reasons = reasons_among(processes, queued, now_ms)
    return [
        job
        for job in queued
        if reasons[job.job_id] is WaitReason.EXECUTORS
        or (
            reasons[job.job_id] is WaitReason.WORKER
            and now_ms - job.run_after_ms > limits.JOB_CAPACITY_NOTED_MS
        )
    ]


def _recent(jobs: Sequence[Job], now_ms: int) -> list[Job]:
    return [job for job in jobs if (job.ended_at_ms or now_ms) > now_ms - limits.DAY_MS]
