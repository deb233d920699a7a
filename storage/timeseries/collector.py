"""One look at queues, streams and groups: what a sample of each says, before it is compared with the last one."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.groups.group import without_holes
from storage.domain.names import LogId
from storage.domain.timeseries.samples import QUEUE, GroupSample, QueueSample, StreamSample, Values
from storage.postgres.repositories.sampled_resources import (
    Holes,
    MeasuredGroup,
    MeasuredPlace,
    MeasuredQueue,
    MeasuredRows,
    MeasuredShard,
    MeasuredStream,
)
from storage.redis.counters.timeseries import HotSeries, HotShard
from storage.redis.keys import LogAddress
from storage.redis.streams.logs import HotLogs
from storage.redis.transport.script_status import LogNotReady

T = TypeVar("T")
A = TypeVar("A")

Behind = tuple[tuple[int, ...], ...]


class Seen(NamedTuple):
    """What a look found. `behind`: from what the next look tells what has come since."""

    namespace: str
    name: str
    resource_id: str
    values: Values
    behind: Behind = ()


class SeenStream(NamedTuple):
    """A stream's shards, each with its log or None, and the groups that read it."""

    stream: MeasuredStream
    shards: tuple[tuple[MeasuredShard, HotShard | None], ...]
    groups: tuple["SeenGroup", ...]


class SeenGroup(NamedTuple):
    """A group: how many records it has still to read, since when the oldest of them waits, and (shard, offset, whether it
    has committed that) of each shard."""

    group: MeasuredGroup
    lag_records: int
    unread_at_ms: int | None
    places: Behind


class ResourceCollector:
    """Asks the stores, many logs at a time."""

    def __init__(self, hot: HotSeries, logs: HotLogs, rows: MeasuredRows, clock: Clock) -> None:
        self._hot = hot
        self._logs = logs
        self._rows = rows
        self._clock = clock

    async def queues(self, queues: Iterable[MeasuredQueue]) -> list[Seen]:
        """The queues, but those that are being deleted."""
        return [one for one in await together(self._queue, queues) if one is not None]

    async def _queue(self, queue: MeasuredQueue) -> Seen | None:
        now = self._clock.script_time()
        counts = await self._hot.look_at_queue(queue.namespace, queue.log_id, now)
        if counts is None:
            return None
        values = _queue_values(counts) if counts else _NO_MESSAGES
        return Seen(queue.namespace, queue.name, queue.log_id, values)

    async def streams(self, streams: Sequence[MeasuredStream]) -> list[SeenStream]:
        """The streams with their groups."""
        groups: dict[LogId, list[MeasuredGroup]] = {}
        for group in await self._rows.groups([stream.stream_id for stream in streams]):
            groups.setdefault(group.stream_id, []).append(group)
        read = [
            shard for stream in streams if stream.stream_id in groups for shard in stream.shards
        ]
        holes = await self._rows.holes([shard.log_id for shard in read]) if read else {}
        asked = [_Asked(stream, groups.get(stream.stream_id, ())) for stream in streams]
        found = await together(self._stream, asked)
        cold = [place for one in found for place in one.cold()]
        since = await self._rows.archived_since(cold) if cold else []
        known = dict(zip(cold, since, strict=True))
        return [one.seen(holes, known) for one in found]

    async def _stream(self, asked: "_Asked") -> "_Found":
        shards = [self._shard(asked, shard) for shard in asked.stream.shards]
        return _Found(asked, await asyncio.gather(*shards))

    async def _shard(self, asked: "_Asked", shard: MeasuredShard) -> "_FoundShard":
        at = LogAddress(asked.stream.namespace, shard.log_id)
        begins = [await self._begins(at, shard, group) for group in asked.groups]
        places = [0 if place is None else place for place in begins]
        if shard.archived is not None:
            places.append(shard.archived)
        return _FoundShard(shard, begins, await self._hot.look_at_shard(at, places))

    async def _begins(
        self, at: LogAddress, shard: MeasuredShard, group: MeasuredGroup
    ) -> int | None:
        """The next offset that a group reads; None for the oldest there is."""
        place = next((one for one in group.places if one.shard == shard.index), _UNKNOWN)
        if place.committed is not None or group.start_time_ms is None:
            return place.committed
        try:
            read = await self._logs.read(
                at, "time", group.start_time_ms, records_max=1, bytes_max=1
            )
        except LogNotReady:
            return None
        return read.records[0].offset if read.records else read.next


class _Asked(NamedTuple):
    stream: MeasuredStream
    groups: Sequence[MeasuredGroup]


class _FoundShard(NamedTuple):
    """A shard, where each group reads on in it, and its log."""

    shard: MeasuredShard
    begins: Sequence[int | None]
    log: HotShard | None

    @property
    def start(self) -> int:
        """The oldest offset that can be read, in the archive too."""
        hot = 0 if self.log is None else self.log.start
        archived = self.shard.archive_start
        return hot if archived is None else min(hot, archived)

    def place(self, nth: int) -> int:
        """Where the group reads on."""
        begins = self.begins[nth]
        return self.start if begins is None else begins


class _Found(NamedTuple):
    asked: _Asked
    shards: Sequence[_FoundShard]

    def cold(self) -> list[tuple[LogId, int, int]]:
        """(stream id, shard, offset) where groups read on that only the archive has."""
        stream_id = self.asked.stream.stream_id
        return [
            (stream_id, found.shard.index, max(found.place(nth), found.start))
            for found in self.shards
            if found.log is not None
            for nth in range(len(found.begins))
            if max(found.place(nth), found.start) < found.log.start
        ]

    def seen(self, holes: Holes, since: Mapping[tuple[LogId, int, int], int | None]) -> SeenStream:
        shards = tuple((found.shard, found.log) for found in self.shards)
        groups = tuple(
            self._group(nth, group, holes, since) for nth, group in enumerate(self.asked.groups)
        )
        return SeenStream(self.asked.stream, shards, groups)

    def _group(
        self,
        nth: int,
        group: MeasuredGroup,
        holes: Holes,
        since: Mapping[tuple[LogId, int, int], int | None],
    ) -> SeenGroup:
        lag, unread, places = 0, [], []
        for found in self.shards:
            if found.log is None:
                continue
            at = max(found.place(nth), found.start)
            lag += without_holes(at, found.log.next, holes.get(found.shard.log_id, []))
            cold = (self.asked.stream.stream_id, found.shard.index, at)
            unread.append(since[cold] if cold in since else found.log.waits_since_ms[nth])
            has_committed = found.begins[nth] is not None
            places.append((found.shard.index, found.place(nth), int(has_committed)))
        waits = [since_ms for since_ms in unread if since_ms is not None]
        return SeenGroup(group, lag, min(waits) if lag and waits else None, tuple(places))


_UNKNOWN = MeasuredPlace(-1, None, None, False)


_NO_MESSAGES = QUEUE.values(QueueSample())


_COUNTED = (
    *("ready", "delayed", "in_flight", "dead_lettered", "sent", "deduplicated", "acknowledged"),
    *("expired", "purged", "received", "bytes_sent", "oldest_ready_at_ms", "moving", "moved_in"),
    *("moved_out", "parked", "dropped", "bytes_held", "dead_exhausted", "dead_rejected"),
    "dead_full",
)
"""As sample_queue.lua lists them."""

_PLACES = tuple(_COUNTED.index(name) for name in QUEUE.names)
_OLDEST = QUEUE.names.index("oldest_ready_at_ms")


def _queue_values(counts: Sequence[int]) -> Values:
    values: list[int | None] = [counts[place] for place in _PLACES]
    if counts[_PLACES[_OLDEST]] < 0:
        values[_OLDEST] = None
    return tuple(values)


def stream_sample(seen: SeenStream, records_in: int, bytes_in: int) -> StreamSample:
    """A stream's sample, given what it took in all."""
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


_TAKEN_WIDTH, _READ_WIDTH = 5, 3
"""What another version noted in another way is as good as not noted."""


def taken_by(seen: SeenStream) -> Behind:
    """(shard, next offset, bytes, log epoch, oldest offset) of each log of a stream."""
    return tuple(
        (shard.index, log.next, log.bytes_in, log.log_epoch, log.start)
        for shard, log in seen.shards
        if log is not None
    )


def taken_since(before: Behind, now: Behind) -> tuple[int, int]:
    """Records and bytes that came between two looks; what an epoch jumped over are none."""
    known = {one[0]: one for one in before if len(one) == _TAKEN_WIDTH}
    records = taken = 0
    for shard, next_offset, size, epoch, _ in now:
        _, next_before, size_before, epoch_before, _ = known.get(shard, (shard, 0, 0, epoch, 0))
        if epoch == epoch_before:
            records += max(0, next_offset - next_before)
        taken += max(0, size - size_before)
    return records, taken


def read_since(before: Behind, now: Behind) -> int:
    """Records that a group has committed between two looks; a reset back is none."""
    known = {one[0]: one[1] for one in before if len(one) == _READ_WIDTH}
    return sum(
        max(0, offset - known.get(shard, offset))
        for shard, offset, has_committed in now
        if has_committed
    )


def group_sample(seen: SeenGroup, committed: int) -> GroupSample:
    """A group's sample, given how much it committed in all."""
    commits = [one.committed_at_ms for one in seen.group.places if one.committed_at_ms is not None]
    return GroupSample(
        lag_records=seen.lag_records,
        unread_at_ms=seen.unread_at_ms,
        members=seen.group.members,
        last_commit_ms=max(commits, default=None),
        committed=committed,
    )


async def together(work: Callable[[A], Awaitable[T]], on: Iterable[A]) -> list[T]:
    """Do it to all, some at a time."""
    found: list[T] = []
    some: list[A] = []
    for one in on:
        some.append(one)
        if len(some) == limits.SERIES_LOGS_AT_ONCE:
            found += await asyncio.gather(*map(work, some))
            some = []
    return found + list(await asyncio.gather(*map(work, some)))
