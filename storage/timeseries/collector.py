"""Collector of samples of queues, streams and groups, before they are compared."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import attrs

from storage.concurrency.isolation import Isolation
from storage.concurrency.tasks import in_batches
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.groups.group import without_holes
from storage.domain.histogram import percentile
from storage.domain.log.address import LogAddress
from storage.domain.names import LogId
from storage.domain.timeseries.samples import QUEUE, GroupSample, QueueSample, StreamSample, Values
from storage.hot_store.errors import LogNotReady
from storage.hot_store.log_store import LogStore, ReadRequest
from storage.hot_store.time_series import HotShard, TimeSeriesStore
from storage.postgres.repositories.sampled_resources import (
    Holes,
    MeasuredGroup,
    MeasuredQueue,
    MeasuredRows,
    MeasuredShard,
    MeasuredStream,
    SampledPosition,
)

T = TypeVar("T")
A = TypeVar("A")

Baseline = tuple[tuple[int, ...], ...]


class Observation(NamedTuple):
    """One observation of a resource.

    The next observation is compared with `behind`, to compute what has been added since.
    """

    namespace: str
    name: str
    resource_id: str
    values: Values
    behind: Baseline = ()


class StreamObservation(NamedTuple):
    """An observation of a stream: its shards, each with its log or None, and its groups."""

    stream: MeasuredStream
    shards: tuple[tuple[MeasuredShard, HotShard | None], ...]
    groups: tuple["GroupObservation", ...]


class GroupObservation(NamedTuple):
    """An observation of a group.

    The records that it has still to read, since when the oldest of them waits, and (shard, offset, whether the group has
    committed that offset) of each shard.
    """

    group: MeasuredGroup
    lag_records: int
    unread_at_ms: int | None
    positions: Baseline


@attrs.define(eq=False, slots=False)
class ResourceCollector:
    """Collector that queries the stores, many logs concurrently."""

    _hot: TimeSeriesStore
    _logs: LogStore
    _rows: MeasuredRows
    _clock: Clock
    _isolation: Isolation

    async def queues(self, queues: Iterable[MeasuredQueue]) -> list[Observation]:
        """Observe the queues, except those that are being deleted."""
        return [
            seen
            for seen in await in_batches(
                queues, self._visit_queue, limits.SERIES_MEASURE_CONCURRENCY_MAX
            )
            if seen is not None
        ]

    async def _visit_queue(self, queue: MeasuredQueue) -> Observation | None:
        subject = f"queues/{queue.namespace}/{queue.name}"
        return await self._isolation.visit("series", subject, partial(self._queue, queue), None)

    async def _queue(self, queue: MeasuredQueue) -> Observation | None:
        now = self._clock.script_time()
        logs = (queue.log_id, *queue.others)
        samples = await asyncio.gather(
            *(self._hot.sample_queue(queue.namespace, log_id, now) for log_id in logs)
        )
        first = samples[0]
        if first is None:
            return None
        counts = _total([sample.counts for sample in samples if sample and sample.counts])
        values = _queue_values(counts) if counts else _NO_MESSAGES
        buckets = Counter[int]()
        for sample in samples:
            buckets.update(sample.acknowledge_times if sample else {})
        times = tuple(sorted(buckets.items()))
        return Observation(queue.namespace, queue.name, queue.log_id, values, times)

    async def streams(self, streams: Sequence[MeasuredStream]) -> list[StreamObservation]:
        """Observe the streams with their groups."""
        groups: dict[LogId, list[MeasuredGroup]] = {}
        for group in await self._rows.groups([stream.stream_id for stream in streams]):
            groups.setdefault(group.stream_id, []).append(group)
        read = [
            shard for stream in streams if stream.stream_id in groups for shard in stream.shards
        ]
        holes = await self._rows.holes([shard.log_id for shard in read]) if read else {}
        requests = [_Request(stream, groups.get(stream.stream_id, ())) for stream in streams]
        visits = await in_batches(
            requests, self._visit_stream, limits.SERIES_MEASURE_CONCURRENCY_MAX
        )
        results = [result for result in visits if result is not None]
        cold = [position for one in results for position in one.cold()]
        since = await self._rows.archived_since(cold) if cold else []
        archived_since = dict(zip(cold, since, strict=True))
        return [one.seen(holes, archived_since) for one in results]

    async def _visit_stream(self, request: "_Request") -> "_Result | None":
        subject = f"streams/{request.stream.namespace}/{request.stream.name}"
        return await self._isolation.visit("series", subject, partial(self._stream, request), None)

    async def _stream(self, request: "_Request") -> "_Result":
        shards = [self._shard(request, shard) for shard in request.stream.shards]
        return _Result(request, await asyncio.gather(*shards))

    async def _shard(self, request: "_Request", shard: MeasuredShard) -> "_MeasuredShardLog":
        log = LogAddress(request.stream.namespace, shard.log_id)
        begins = [await self._begins(log, shard, group) for group in request.groups]
        positions = [0 if position is None else position for position in begins]
        if shard.archived is not None:
            positions.append(shard.archived)
        return _MeasuredShardLog(shard, begins, await self._hot.sample_shard(log, positions))

    async def _begins(
        self, log: LogAddress, shard: MeasuredShard, group: MeasuredGroup
    ) -> int | None:
        """Return the next offset that a group reads; None for the oldest."""
        position = next((one for one in group.positions if one.shard == shard.index), _UNKNOWN)
        if position.committed is not None or group.start_time_ms is None:
            return position.committed
        try:
            read = await self._logs.read(log, ReadRequest("time", group.start_time_ms, 1, 1))
        except LogNotReady:
            return None
        return read.records[0].offset if read.records else read.next


class _Request(NamedTuple):
    stream: MeasuredStream
    groups: Sequence[MeasuredGroup]


class _MeasuredShardLog(NamedTuple):
    """A shard, the offset at which each group continues in it, and its log."""

    shard: MeasuredShard
    begins: Sequence[int | None]
    log: HotShard | None

    @property
    def start(self) -> int:
        """The oldest readable offset, in the archive too."""
        hot = 0 if self.log is None else self.log.start
        archived = self.shard.archive_start
        return hot if archived is None else min(hot, archived)

    def position(self, nth: int) -> int:
        """Return the offset at which the group continues."""
        begins = self.begins[nth]
        return self.start if begins is None else begins


class _Result(NamedTuple):
    request: _Request
    shards: Sequence[_MeasuredShardLog]

    def cold(self) -> list[tuple[LogId, int, int]]:
        """Return (stream id, shard, offset) where groups continue in records only in the archive."""
        stream_id = self.request.stream.stream_id
        return [
            (stream_id, found.shard.index, max(found.position(nth), found.start))
            for found in self.shards
            if found.log is not None
            for nth in range(len(found.begins))
            if max(found.position(nth), found.start) < found.log.start
        ]

    def seen(
        self, holes: Holes, since: Mapping[tuple[LogId, int, int], int | None]
    ) -> StreamObservation:
        shards = tuple((found.shard, found.log) for found in self.shards)
        groups = tuple(
            self._group(nth, group, holes, since) for nth, group in enumerate(self.request.groups)
        )
        return StreamObservation(self.request.stream, shards, groups)

    def _group(
        self,
        nth: int,
        group: MeasuredGroup,
        holes: Holes,
        since: Mapping[tuple[LogId, int, int], int | None],
    ) -> GroupObservation:
        lag, unread, positions = 0, [], []
        for shard_result in self.shards:
            if shard_result.log is None:
                continue
            position = max(shard_result.position(nth), shard_result.start)
            lag += without_holes(
                position, shard_result.log.next, holes.get(shard_result.shard.log_id, [])
            )
            cold = (self.request.stream.stream_id, shard_result.shard.index, position)
            unread.append(since[cold] if cold in since else shard_result.log.waits_since_ms[nth])
            has_committed = shard_result.begins[nth] is not None
            positions.append(
                (shard_result.shard.index, shard_result.position(nth), int(has_committed))
            )
        waits = [since_ms for since_ms in unread if since_ms is not None]
        return GroupObservation(group, lag, min(waits) if lag and waits else None, tuple(positions))


_UNKNOWN = SampledPosition(-1, None, None, False)


_NO_MESSAGES = QUEUE.values(QueueSample())


_COUNTED = (
    *("ready", "delayed", "in_flight", "dead_lettered", "sent", "deduplicated", "acknowledged"),
    *("expired", "purged", "received", "bytes_sent", "oldest_ready_at_ms", "moving", "moved_in"),
    *("moved_out", "parked", "dropped", "bytes_held", "dead_exhausted", "dead_rejected"),
    *("dead_full", "failed", "consumers"),
)
"""Counts in the order of sample_queue.lua."""

_PERCENTILES = {"acknowledge_p50_ms": 50, "acknowledge_p95_ms": 95, "acknowledge_p99_ms": 99}
"""Columns that follow from two observations; they stand last."""

_QUEUE_INDEXES = tuple(_COUNTED.index(name) for name in QUEUE.names if name not in _PERCENTILES)
_OLDEST = QUEUE.names.index("oldest_ready_at_ms")


_OLDEST_READY = _COUNTED.index("oldest_ready_at_ms")


def _total(counts: Sequence[Sequence[int]]) -> Sequence[int]:
    """Return the counts of a queue from those of its partitions; empty if none has any."""
    if len(counts) == 1:
        return counts[0]
    totals = [sum(column) for column in zip(*counts, strict=True)]
    if totals:
        oldest = [own[_OLDEST_READY] for own in counts if own[_OLDEST_READY] >= 0]
        totals[_OLDEST_READY] = min(oldest, default=-1)
    return totals


def _queue_values(counts: Sequence[int]) -> Values:
    values: list[int | None] = [counts[position] for position in _QUEUE_INDEXES]
    if counts[_QUEUE_INDEXES[_OLDEST]] < 0:
        values[_OLDEST] = None
    return (*values, *(None for _ in _PERCENTILES))


def with_percentiles(values: Values, before: Baseline, now: Baseline) -> Values:
    """Return a queue's values with the percentiles of times counted between observations."""
    since = _counted_since(_buckets(before), _buckets(now))
    percentiles = (
        percentile(since, percent, limits.ACKNOWLEDGE_TIMES_SUB_BITS)
        for percent in _PERCENTILES.values()
    )
    return (*values[: -len(_PERCENTILES)], *percentiles)


def _buckets(observed: Baseline) -> dict[int, int]:
    return {bucket[0]: bucket[1] for bucket in observed}


def _counted_since(before: dict[int, int], now: dict[int, int]) -> dict[int, int]:
    """Return what a histogram grew by; all of it if it expired in between and began again."""
    if any(now.get(bucket, 0) < count for bucket, count in before.items()):
        return now
    return {bucket: count - before.get(bucket, 0) for bucket, count in now.items()}


def stream_sample(seen: StreamObservation, records_in: int, bytes_in: int) -> StreamSample:
    """Return a stream's sample, given the totals that were written to it."""
    logs = [log for _, log in seen.shards if log is not None]
    unread = [one.unread_at_ms for one in seen.groups if one.unread_at_ms is not None]
    archived = [
        log.waits_since_ms[-1]
        for shard, log in seen.shards
        if log is not None and shard.archived is not None
    ]
    return StreamSample(
        records=sum(log.next - log.start for log in logs),
        bytes_held=sum(log.bytes_held for log in logs),
        shards=sum(shard.is_open for shard, _ in seen.shards),
        groups=len(seen.groups),
        lag_records=max((one.lag_records for one in seen.groups), default=None),
        unread_at_ms=min(unread, default=None),
        unarchived_at_ms=min((since for since in archived if since is not None), default=None),
        records_in=records_in,
        bytes_in=bytes_in,
    )


_PRODUCED_WIDTH, _CONSUMED_WIDTH = 5, 3
"""Observations stored by another version in another format are ignored."""


def produced_total(seen: StreamObservation) -> Baseline:
    """Return (shard, next offset, bytes, log epoch, oldest offset) of each log of a stream."""
    return tuple(
        (shard.index, log.next, log.bytes_in, log.log_epoch, log.start)
        for shard, log in seen.shards
        if log is not None
    )


def produced_delta(before: Baseline, now: Baseline) -> tuple[int, int]:
    """Return the records and bytes added between two observations.

    Offsets that an epoch jumped over do not count.
    """
    before_by_shard = {one[0]: one for one in before if len(one) == _PRODUCED_WIDTH}
    records = bytes_added = 0
    for shard, next_offset, size, epoch, _ in now:
        _, next_before, size_before, epoch_before, _ = before_by_shard.get(
            shard, (shard, 0, 0, epoch, 0)
        )
        if epoch == epoch_before:
            records += max(0, next_offset - next_before)
        bytes_added += max(0, size - size_before)
    return records, bytes_added


def consumed_delta(before: Baseline, now: Baseline) -> int:
    """Return the records that a group committed between two observations.

    A reset to an earlier offset counts nothing.
    """
    before_by_shard = {one[0]: one[1] for one in before if len(one) == _CONSUMED_WIDTH}
    return sum(
        max(0, offset - before_by_shard.get(shard, offset))
        for shard, offset, has_committed in now
        if has_committed
    )


def group_sample(seen: GroupObservation, committed: int) -> GroupSample:
    """Return a group's sample, given the total that it has committed."""
    commits = [
        one.committed_at_ms for one in seen.group.positions if one.committed_at_ms is not None
    ]
    return GroupSample(
        lag_records=seen.lag_records,
        unread_at_ms=seen.unread_at_ms,
        members=seen.group.members,
        last_commit_ms=max(commits, default=None),
        committed=committed,
    )
