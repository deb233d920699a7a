"""Queries of time series and latest samples, for dashboards, metrics and charts.

`storage.timeseries.sampler`, a maintenance task of the sweeper, measures; this reads its results. A chart of one resource
is three small reads of the store, a page of charts three for each, and the latest samples of a whole namespace are one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from storage.catalog.catalog import Catalog
from storage.concurrency.ttl_cache import TtlCache
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import GroupNotFound, QueueNotFound, StreamNotFound
from storage.domain.names import GroupName, QueueName, StreamName
from storage.domain.timeseries.history import History
from storage.domain.timeseries.rollup import chart
from storage.domain.timeseries.samples import (
    GROUP,
    QUEUE,
    STREAM,
    TOTAL,
    GroupSample,
    Latest,
    QueueSample,
    S,
    Samples,
    Shape,
    StreamSample,
    TotalSample,
    with_failure_ratio,
)
from storage.groups.engine import Groups
from storage.hot_store.time_series import LatestSample, TimeSeriesStore
from storage.timeseries.charts import ChartReader
from storage.timeseries.sampler import Sampler
from storage.timeseries.totals import DEPLOYMENT, NAMESPACE

N = TypeVar("N", QueueName, StreamName, GroupName)


class HotShardExtent(NamedTuple):
    """A shard's oldest offset in the hot store, and the next one to be written."""

    shard: int
    start: int
    next: int


class TimeSeriesQuery:
    """Charts and latest samples.

    Every verb raises StorageUnavailable. `window_ms` is how far back a chart reaches: up to an hour in steps of 10 s, up to
    two weeks by quarters of an hour; a longer window is cut. The columns are those of the shapes in
    `storage.domain.timeseries.samples`.
    """

    def __init__(
        self, hot: TimeSeriesStore, sampler: Sampler, catalog: Catalog, groups: Groups, clock: Clock
    ) -> None:
        self._hot = hot
        self._sampler = sampler
        self._catalog = catalog
        self._groups = groups
        self._charts = ChartReader(hot, clock)
        self._latest_cache: TtlCache[Any] = TtlCache(limits.SERIES_CACHE_MS, clock)
        self._weeks_cache: TtlCache[Any] = TtlCache(
            limits.SERIES_WEEKS_CACHE_MS, clock, entries_max=limits.SERIES_WEEKS_CACHED_MAX
        )

    async def sample(self) -> int:
        """Measure everything, at most once in ten seconds over all processes.

        The sweeper's maintenance task. Returns the number of queues, streams and groups observed; 0 when this slot was
        measured already.
        """
        return await self._sampler.sample()

    # Charts

    async def of_queue(
        self, queue: QueueName, window_ms: int, *, now_ms: int | None = None
    ) -> Samples:
        """Return a queue's chart, with a column `failure_ratio`.

        Raises QueueNotFound.
        """
        ids = [(queue, (await self._catalog.queue(queue)).log_id)]
        return with_failure_ratio((await self._of(QUEUE, ids, window_ms, now_ms))[queue])

    async def of_queues(
        self, queues: Sequence[QueueName], window_ms: int, *, now_ms: int | None = None
    ) -> dict[QueueName, Samples]:
        """Return the charts of the queues that exist; at most SERIES_PAGE_MAX queues."""
        return await self._of_page(QUEUE, queues, self._queue_id, window_ms, now_ms)

    async def of_stream(
        self, stream: StreamName, window_ms: int, *, now_ms: int | None = None
    ) -> Samples:
        """Return a stream's chart; empty for a queue's view, which is not measured.

        Raises StreamNotFound.
        """
        ids = [(stream, (await self._catalog.stream(stream)).stream_id)]
        return (await self._of(STREAM, ids, window_ms, now_ms))[stream]

    async def of_streams(
        self, streams: Sequence[StreamName], window_ms: int, *, now_ms: int | None = None
    ) -> dict[StreamName, Samples]:
        """Return the charts of the streams that exist; at most SERIES_PAGE_MAX streams."""

        async def id_of(name: StreamName) -> str:
            return (await self._catalog.stream(name)).stream_id

        return await self._of_page(STREAM, streams, id_of, window_ms, now_ms)

    async def of_group(
        self, group: GroupName, window_ms: int, *, now_ms: int | None = None
    ) -> Samples:
        """Return a group's chart.

        Raises GroupNotFound.
        """
        ids = [(group, (await self._groups.get(group)).group_id)]
        return (await self._of(GROUP, ids, window_ms, now_ms))[group]

    async def of_namespace(
        self, namespace: str, window_ms: int, *, now_ms: int | None = None
    ) -> Samples:
        """Return the chart of a namespace's totals; empty for a namespace that does not exist."""
        return await self._of_total(namespace, NAMESPACE, window_ms, now_ms)

    async def of_deployment(self, window_ms: int, *, now_ms: int | None = None) -> Samples:
        """Return the chart of the totals of all namespaces, and of the store."""
        return await self._of_total("", DEPLOYMENT, window_ms, now_ms)

    async def _of_page(
        self,
        shape: Shape[S],
        names: Sequence[N],
        id_of: Callable[[N], Awaitable[str]],
        window_ms: int,
        now_ms: int | None,
        *,
        columns: Sequence[str] | None = None,
    ) -> dict[N, Samples]:
        """Return charts without a query to Postgres for each: the latest samples have the ids."""
        ids = []
        for name, latest in (
            await self._latest_samples(shape, names[: limits.SERIES_PAGE_MAX])
        ).items():
            with suppress(QueueNotFound, StreamNotFound, GroupNotFound):
                ids.append((name, latest.resource_id if latest else await id_of(name)))
        return await self._of(shape, ids, window_ms, now_ms, columns=columns)

    async def _of(
        self,
        shape: Shape[S],
        ids: Sequence[tuple[N, str]],
        window_ms: int,
        now_ms: int | None,
        *,
        columns: Sequence[str] | None = None,
    ) -> dict[N, Samples]:
        window, ticks = await self._charts.window(window_ms, now_ms)
        page = ids[: limits.SERIES_PAGE_MAX]
        latest = await self._latest_samples(shape, [name for name, _ in page])
        rows = await asyncio.gather(
            *(
                self._charts.rows(shape, name.namespace, resource_id, window, latest.get(name))
                for name, resource_id in page
            )
        )
        return {
            name: chart(
                shape,
                ring=window.ring,
                slots=window.slots,
                ticks=ticks,
                rows=found,
                resource_id=resource_id,
                columns=columns,
            )
            for (name, resource_id), found in zip(page, rows, strict=True)
        }

    async def _of_total(
        self,
        namespace: str,
        resource_id: str,
        window_ms: int,
        now_ms: int | None,
        *,
        columns: Sequence[str] | None = None,
    ) -> Samples:
        window, ticks = await self._charts.window(window_ms, now_ms)
        [latest] = await self._hot.latest_of("", TOTAL.kind, [namespace])
        rows = await self._charts.rows(TOTAL, namespace, resource_id, window, latest)
        return chart(
            TOTAL,
            ring=window.ring,
            slots=window.slots,
            ticks=ticks,
            rows=rows,
            resource_id="",
            columns=columns,
        )

    async def _latest_samples(
        self, shape: Shape[S], names: Sequence[N]
    ) -> dict[N, LatestSample | None]:
        """Return the latest samples of these resources, to be read before their chunks.

        The chunks have the changes made in between.
        """
        latest: dict[N, LatestSample | None] = {}
        for namespace in {name.namespace for name in names}:
            in_namespace = [name for name in names if name.namespace == namespace]
            of_namespace = await self._hot.latest_of(
                namespace, shape.kind, [name.name for name in in_namespace]
            )
            latest |= dict(zip(in_namespace, of_namespace, strict=True))
        return latest

    # Histories

    async def queue_histories(
        self, queues: Sequence[QueueName], columns: Sequence[str]
    ) -> dict[QueueName, History]:
        """Return the histories of the queues that exist; at most SERIES_PAGE_MAX queues."""
        return await self._histories(QUEUE, queues, self._queue_id, columns)

    async def group_histories(
        self, groups: Sequence[GroupName], columns: Sequence[str]
    ) -> dict[GroupName, History]:
        """Return the histories of the groups that exist; at most SERIES_PAGE_MAX groups."""
        return await self._histories(GROUP, groups, self._group_id, columns)

    async def deployment_history(self, columns: Sequence[str]) -> History:
        """Return the history of the totals of all namespaces, and of the store."""
        hour, weeks = await asyncio.gather(
            *(
                self._of_total("", DEPLOYMENT, window_ms, None, columns=columns)
                for window_ms in (limits.HOUR_MS, limits.SERIES_QUARTER_RETENTION_MS)
            )
        )
        return History(hour, weeks)

    async def _histories(
        self,
        shape: Shape[S],
        names: Sequence[N],
        id_of: Callable[[N], Awaitable[str]],
        columns: Sequence[str],
    ) -> dict[N, History]:
        """Return the last hour, and two weeks that are cached for a minute."""

        async def read(window_ms: int, of: Sequence[N]) -> dict[N, Samples]:
            return await self._of_page(shape, of, id_of, window_ms, None, columns=columns)

        async def weeks(name: N) -> Samples | None:
            charts = partial(read, limits.SERIES_QUARTER_RETENTION_MS, [name])
            page = await self._weeks_cache.get((shape.kind, name, tuple(columns)), charts)
            chart_of_weeks: Samples | None = page.get(name)
            return chart_of_weeks

        hours = await read(limits.HOUR_MS, names)
        traced = await asyncio.gather(*map(weeks, hours))
        return {
            name: History(hour, longer)
            for (name, hour), longer in zip(hours.items(), traced, strict=True)
        }

    async def _queue_id(self, name: QueueName) -> str:
        return (await self._catalog.queue(name)).log_id

    async def _group_id(self, name: GroupName) -> str:
        return (await self._groups.get(name)).group_id

    # Latest samples

    async def latest_queues(self, namespace: str) -> Latest[QueueSample]:
        """Return the latest sample of every queue of a namespace, by name.

        One read of the store, cached for two seconds.
        """
        return await self._latest(QUEUE, namespace)

    async def latest_streams(self, namespace: str) -> Latest[StreamSample]:
        """Return the latest sample of every stream of a namespace, by name.

        One read of the store, cached for two seconds.
        """
        return await self._latest(STREAM, namespace)

    async def latest_groups(self, namespace: str) -> Latest[GroupSample]:
        """Return the latest sample of every consumer group of a namespace, by name.

        One read of the store, cached for two seconds.
        """
        return await self._latest(GROUP, namespace)

    async def latest_shards(self, namespace: str) -> Mapping[str, Sequence[HotShardExtent]]:
        """Return the extents of the shards of each stream of a namespace, by the stream's name.

        As of the latest sample.
        """

        async def read() -> dict[str, tuple[HotShardExtent, ...]]:
            latest = await self._hot.latest(namespace, STREAM.kind)
            return {
                name: tuple(HotShardExtent(one[0], one[4], one[1]) for one in stream.behind)
                for name, stream in latest.items()
            }

        cache: TtlCache[dict[str, tuple[HotShardExtent, ...]]] = self._latest_cache
        return await cache.get(("shards", namespace), read)

    async def latest_namespaces(self) -> Latest[TotalSample]:
        """Return the totals of each namespace, by name, and the deployment's under the empty name."""
        return await self._latest(TOTAL, "")

    async def _latest(self, shape: Shape[S], namespace: str) -> Latest[S]:
        async def read() -> Latest[S]:
            latest, [deployment] = await asyncio.gather(
                self._hot.latest(namespace, shape.kind), self._hot.latest_of("", TOTAL.kind, [""])
            )
            by_name = {
                name: shape.made(one.values, one.rates_of(shape)) for name, one in latest.items()
            }
            return Latest(_measured_at(deployment), by_name)

        cache: TtlCache[Latest[S]] = self._latest_cache
        return await cache.get((shape.kind, namespace), read)


def _measured_at(deployment: LatestSample | None) -> int | None:
    return None if deployment is None else deployment.values[_SAMPLED_AT]


_SAMPLED_AT = TOTAL.names.index("sampled_at_ms")
