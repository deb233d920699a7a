"""Time series and what was last measured: what dashboards, metrics and charts are drawn from.

The measuring itself is `storage.timeseries.sampler`, a duty of the sweeper; this reads what it left. A chart of one resource is three
small reads of the store, a page of charts three for each, and what was last measured of a whole namespace is one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from storage.catalog.catalog import Catalog
from storage.concurrency.ttl_cache import TtlCache
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import QueueNotFound, StreamNotFound
from storage.domain.names import GroupName, QueueName, StreamName
from storage.domain.timeseries.rollup import Row, Tick, chart, read_chunk, rows_of, widened, width
from storage.domain.timeseries.samples import (
    FINEST,
    GROUP,
    QUEUE,
    STREAM,
    TOTAL,
    GroupSample,
    Latest,
    QueueSample,
    Ring,
    S,
    Samples,
    Shape,
    StreamSample,
    TotalSample,
    ring_for,
)
from storage.groups.engine import Groups
from storage.redis.counters.timeseries import HotSeries, Kept
from storage.timeseries.sampler import Sampler
from storage.timeseries.totals import DEPLOYMENT, NAMESPACE, ticks_of

N = TypeVar("N", QueueName, StreamName, GroupName)


class _Window:
    """The slots of a chart, and those before it that its first rates need."""

    def __init__(self, ring: Ring, window_ms: int, last: int) -> None:
        length = max(1, min(window_ms, ring.reach_ms) // ring.step_ms)
        self.ring = ring
        self.slots = range(last - length + 1, last + 1)
        self.first = self.slots.start - limits.SERIES_RATE_STEPS
        self.last = last

    @property
    def chunks(self) -> range:
        return self.ring.chunks(self.first, self.last)


class ShardPlace(NamedTuple):
    """A shard's oldest offset in the hot store, and the next one to be written."""

    shard: int
    start: int
    next: int


class Series:
    """Charts and what was last measured. Every verb raises StorageUnavailable.

    `window_ms` is how far back a chart reaches: up to an hour in steps of 10 s, up to a day by minutes, up to two weeks by
    quarters of an hour; what is longer is cut. The columns are those of the shapes in `storage.domain.timeseries.samples`.
    """

    def __init__(
        self, hot: HotSeries, sampler: Sampler, catalog: Catalog, groups: Groups, clock: Clock
    ) -> None:
        self._hot = hot
        self._sampler = sampler
        self._catalog = catalog
        self._groups = groups
        self._clock = clock
        self._ticks_known: TtlCache[dict[int, Tick]] = TtlCache(limits.SERIES_KNOWN_MS, clock)
        self._latest_known: TtlCache[Any] = TtlCache(limits.SERIES_KNOWN_MS, clock)

    async def sample(self) -> int:
        """The sweeper's duty: measure everything, once in ten seconds however often this is asked and by how many.

        Gives how many queues, streams and groups were looked at; 0 when this slot was measured already.
        """
        return await self._sampler.sample()

    # Charts

    async def of_queue(
        self, queue: QueueName, window_ms: int, *, now_ms: int | None = None
    ) -> Samples:
        """A queue's chart. Raises QueueNotFound."""
        found = [(queue, (await self._catalog.queue(queue)).log_id)]
        return (await self._of(QUEUE, found, window_ms, now_ms))[queue]

    async def of_queues(
        self, queues: Sequence[QueueName], window_ms: int, *, now_ms: int | None = None
    ) -> dict[QueueName, Samples]:
        """The charts of SERIES_PAGE_MAX queues at most, of those that are there."""

        async def ask(name: QueueName) -> str:
            return (await self._catalog.queue(name)).log_id

        return await self._of_page(QUEUE, queues, ask, window_ms, now_ms)

    async def of_stream(
        self, stream: StreamName, window_ms: int, *, now_ms: int | None = None
    ) -> Samples:
        """A stream's chart; of a queue's view, nothing was measured. Raises StreamNotFound."""
        found = [(stream, (await self._catalog.stream(stream)).stream_id)]
        return (await self._of(STREAM, found, window_ms, now_ms))[stream]

    async def of_streams(
        self, streams: Sequence[StreamName], window_ms: int, *, now_ms: int | None = None
    ) -> dict[StreamName, Samples]:
        """The charts of SERIES_PAGE_MAX streams at most, of those that are there."""

        async def ask(name: StreamName) -> str:
            return (await self._catalog.stream(name)).stream_id

        return await self._of_page(STREAM, streams, ask, window_ms, now_ms)

    async def of_group(
        self, group: GroupName, window_ms: int, *, now_ms: int | None = None
    ) -> Samples:
        """A group's chart. Raises GroupNotFound."""
        found = [(group, (await self._groups.get(group)).group_id)]
        return (await self._of(GROUP, found, window_ms, now_ms))[group]

    async def of_namespace(
        self, namespace: str, window_ms: int, *, now_ms: int | None = None
    ) -> Samples:
        """The chart of a namespace's totals; nothing was measured of one that is not there."""
        return await self._of_total(namespace, NAMESPACE, window_ms, now_ms)

    async def of_deployment(self, window_ms: int, *, now_ms: int | None = None) -> Samples:
        """The chart of the totals of all namespaces, and of the store."""
        return await self._of_total("", DEPLOYMENT, window_ms, now_ms)

    async def _of_page(
        self,
        shape: Shape[S],
        names: Sequence[N],
        ask: Callable[[N], Awaitable[str]],
        window_ms: int,
        now_ms: int | None,
    ) -> dict[N, Samples]:
        """Charts without a question to Postgres for each: their ids are known by what was last measured."""
        found = []
        for name, kept in (await self._kept(shape, names[: limits.SERIES_PAGE_MAX])).items():
            with suppress(QueueNotFound, StreamNotFound):
                found.append((name, kept.resource_id if kept else await ask(name)))
        return await self._of(shape, found, window_ms, now_ms)

    async def _of(
        self,
        shape: Shape[S],
        asked: Sequence[tuple[N, str]],
        window_ms: int,
        now_ms: int | None,
    ) -> dict[N, Samples]:
        window, ticks = await self._window(window_ms, now_ms)
        some = asked[: limits.SERIES_PAGE_MAX]
        kept = await self._kept(shape, [name for name, _ in some])
        rows = await asyncio.gather(
            *(
                self._rows(shape, name.namespace, resource_id, window, kept.get(name))
                for name, resource_id in some
            )
        )
        return {
            name: chart(shape, window.ring, window.slots, ticks, found, resource_id)
            for (name, resource_id), found in zip(some, rows, strict=True)
        }

    async def _of_total(
        self, namespace: str, resource_id: str, window_ms: int, now_ms: int | None
    ) -> Samples:
        window, ticks = await self._window(window_ms, now_ms)
        [kept] = await self._hot.latest_of("", TOTAL.kind, [namespace])
        rows = await self._rows(TOTAL, namespace, resource_id, window, kept)
        return chart(TOTAL, window.ring, window.slots, ticks, rows, "")

    async def _kept(self, shape: Shape[S], names: Sequence[N]) -> dict[N, Kept | None]:
        """What was last measured of these, before their chunks are read: what changes in between, those know."""
        found: dict[N, Kept | None] = {}
        for namespace in {name.namespace for name in names}:
            some = [name for name in names if name.namespace == namespace]
            known = await self._hot.latest_of(namespace, shape.kind, [name.name for name in some])
            found |= dict(zip(some, known, strict=True))
        return found

    async def _rows(
        self,
        shape: Shape[S],
        namespace: str,
        resource_id: str,
        window: _Window,
        kept: Kept | None,
    ) -> list[Row | None]:
        found = await self._hot.chunks(namespace, resource_id, window.ring, window.chunks)
        ring, wide = window.ring, width(shape)
        chunks = {
            number: read_chunk(packed, number * ring.chunk_slots, wide)
            for number, packed in found.items()
        }
        stood = None
        if kept is not None and kept.resource_id == resource_id:
            stood = widened(shape, shape.values(shape.made(kept.values, kept.rates)))
        return rows_of(chunks, ring, window.first, window.last, stood)

    async def _window(self, window_ms: int, now_ms: int | None) -> tuple[_Window, dict[int, Tick]]:
        """The slots of a chart that ends now, and which of them were measured. A slot that is not over is not shown, but
        for one of the finest ring that was measured."""
        ring = ring_for(window_ms)
        slot = ring.slot(self._clock.now_ms() if now_ms is None else now_ms)
        window = _Window(ring, window_ms, slot)
        ticks = await self._ticks(window)
        if ring is FINEST and slot in ticks:
            return window, ticks
        return _Window(ring, window_ms, slot - 1), ticks

    async def _ticks(self, window: _Window) -> dict[int, Tick]:
        async def read() -> dict[int, Tick]:
            found = await self._hot.chunks("", DEPLOYMENT, window.ring, window.chunks)
            return ticks_of(found, window.ring)

        return await self._ticks_known.get((window.ring.nth, window.chunks), read)

    # What was last measured

    async def latest_queues(self, namespace: str) -> Latest[QueueSample]:
        """Every queue of a namespace as it was last measured, by name. One read of the store, kept for two seconds."""
        return await self._latest(QUEUE, namespace)

    async def latest_streams(self, namespace: str) -> Latest[StreamSample]:
        """The same of streams."""
        return await self._latest(STREAM, namespace)

    async def latest_groups(self, namespace: str) -> Latest[GroupSample]:
        """The same of consumer groups."""
        return await self._latest(GROUP, namespace)

    async def latest_shards(self, namespace: str) -> Mapping[str, Sequence[ShardPlace]]:
        """How far the shards of each stream of a namespace reached then, by the stream's name."""

        async def read() -> dict[str, tuple[ShardPlace, ...]]:
            kept = await self._hot.latest(namespace, STREAM.kind)
            return {
                name: tuple(ShardPlace(one[0], one[4], one[1]) for one in stream.behind)
                for name, stream in kept.items()
            }

        known: TtlCache[dict[str, tuple[ShardPlace, ...]]] = self._latest_known
        return await known.get(("shards", namespace), read)

    async def latest_namespaces(self) -> Latest[TotalSample]:
        """The totals of each namespace, by name, and those of the deployment under the empty one."""
        return await self._latest(TOTAL, "")

    async def _latest(self, shape: Shape[S], namespace: str) -> Latest[S]:
        async def read() -> Latest[S]:
            kept, [deployment] = await asyncio.gather(
                self._hot.latest(namespace, shape.kind), self._hot.latest_of("", TOTAL.kind, [""])
            )
            by_name = {
                name: shape.made(one.values, one.rates_of(shape)) for name, one in kept.items()
            }
            return Latest(_measured_at(deployment), by_name)

        known: TtlCache[Latest[S]] = self._latest_known
        return await known.get((shape.kind, namespace), read)


def _measured_at(deployment: Kept | None) -> int | None:
    return None if deployment is None else deployment.values[_SAMPLED_AT]


_SAMPLED_AT = TOTAL.names.index("sampled_at_ms")
