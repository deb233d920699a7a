"""Archive planner: selects the logs to archive now, and the files to compact.

plan     every few seconds, by one process: a job for each lane of a namespace that has something due
due      by the worker that has the job: the ranges to copy, as they are now
copy     by Spark: each range into files, which no row names yet
commit   checked for gaps; then the files, `archived` and the end of the job in one transaction
         (`storage.archive.commit`)

docs/internals/tiering.md explains each step, and what a crash does.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from functools import partial

import attrs

from storage.catalog.catalog import Catalog
from storage.concurrency.isolation import Isolation
from storage.domain import limits
from storage.domain.archive import (
    ArchivedFile,
    Backlog,
    LogRange,
    is_due,
    lane_of,
    ranges_of,
    to_compact,
    unarchived_bytes_max,
    unexplained,
)
from storage.domain.clock import Clock
from storage.domain.jobs import JobKind
from storage.domain.log.address import LogAddress
from storage.domain.names import StreamName
from storage.domain.queues.stream_view import view_of
from storage.domain.streams.stream import Shard, Stream
from storage.hot_store.errors import LogNotReady
from storage.hot_store.log_store import HotBacklog, LogStore
from storage.jobs import Jobs
from storage.postgres.repositories.archive_manifest import ArchiveRows, Mark

logger = logging.getLogger(__name__)


@attrs.define(eq=False, slots=False, kw_only=True)
class ArchivePlanner:
    """Planning of archive and compaction jobs, and their input for the worker.

    Every verb raises StorageUnavailable.
    """

    _rows: ArchiveRows
    _hot: LogStore
    _catalog: Catalog
    _jobs: Jobs
    _clock: Clock
    _isolation: Isolation

    async def plan(self) -> int:
        """Submit a job for every lane with due logs and no open job; return the number of lanes."""
        lanes: set[tuple[str, int]] = set()
        async for log in self._due():
            lanes.add((log.namespace, lane_of(log.stream_id)))
        for namespace, lane in sorted(lanes):
            submit = partial(
                self._jobs.submit,
                namespace,
                JobKind.ARCHIVE,
                f"lane {lane}",
                {"lane": lane},
                take_open=True,
            )
            await self._isolation.visit("archive", f"namespaces/{namespace}", submit, None)
        return len(lanes)

    async def due(
        self, namespace: str, *, lane: int | None = None, stream: str | None = None
    ) -> list[LogRange]:
        """Return the ranges that a job copies: those due in a lane, or all of one stream.

        Bounded; the rest is due again as soon as these are archived.
        """
        ranges: list[LogRange] = []
        async for log in self._due(namespace, lane, stream):
            ranges += ranges_of(log)
            if len(ranges) >= limits.ARCHIVE_RANGES_PER_JOB:
                break
        return ranges

    async def _due(
        self, namespace: str | None = None, lane: int | None = None, name: str | None = None
    ) -> AsyncIterator[LogRange]:
        """Yield the ranges to archive, for each log from its archived offset to its end."""
        async for streams in self._archived_streams(namespace, lane, name):
            marks = await self._rows.marks([stream.stream_id for stream in streams])
            shards = [(stream, shard) for stream in streams for shard in stream.shards]
            for begin in range(0, len(shards), limits.ARCHIVE_MEASURE_CONCURRENCY_MAX):
                part = shards[begin : begin + limits.ARCHIVE_MEASURE_CONCURRENCY_MAX]
                measurements = [
                    self._isolation.visit(
                        "archive",
                        f"streams/{stream.name}/shards/{shard.index}",
                        partial(self._measure_backlog, stream, shard, marks, name),
                        None,
                    )
                    for stream, shard in part
                ]
                for log in await asyncio.gather(*measurements):
                    if log is not None:
                        yield log

    async def _archived_streams(
        self, namespace: str | None, lane: int | None, name: str | None
    ) -> AsyncIterator[list[Stream]]:
        if name is not None and namespace is not None:
            yield [await self._catalog.stream(StreamName(name, namespace))]
            return
        page: list[Stream] = []
        async for stream in self._every():
            if namespace not in (None, stream.name.namespace):
                continue
            if lane in (None, lane_of(stream.stream_id)):
                page.append(stream)
            if len(page) == limits.PAGE_ITEMS_DEFAULT:
                yield page
                page = []
        yield page

    async def _every(self) -> AsyncIterator[Stream]:
        """Yield streams, and views of queues, that are to be archived."""
        async for stream in self._catalog.iter_streams():
            if stream.spec.archive:
                yield stream
        async for queue in self._catalog.archived_queues():
            yield view_of(queue)

    async def _measure_backlog(
        self,
        stream: Stream,
        shard: Shard,
        marks: Mapping[tuple[str, int], Mark],
        requested: str | None,
    ) -> LogRange | None:
        """Return the range of one log to archive now, or all of it if its stream was requested."""
        key = (stream.stream_id, shard.index)
        mark = marks.get(key)
        log = LogAddress(stream.name.namespace, shard.log_id, stream.is_view)
        try:
            hot = await self._hot.backlog(
                log, 0 if mark is None else mark.archived, self._clock.script_time()
            )
        except LogNotReady:
            return None  # never written, or about to be created again
        if mark is None:
            await self._rows.begin(
                [_range(stream, shard, hot.start, hot.next)], self._clock.now_ms()
            )
            mark = Mark(hot.start, hot.start)
        first = await self._record_gap(key, shard, mark, hot)
        backlog = Backlog(first, hot.next, hot.bytes, hot.waited_ms)
        is_requested = requested is not None and first < hot.next
        budget = unarchived_bytes_max(stream.spec.hot_bytes_max)
        if is_requested or is_due(backlog, stream.spec.archive_lag_ms, budget, closed=hot.closed):
            return _range(stream, shard, first, hot.next)
        return None

    async def _record_gap(
        self, key: tuple[str, int], shard: Shard, mark: Mark, hot: HotBacklog
    ) -> int:
        """Return the offset at which to start archiving the log.

        Records that the hot store no longer has are skipped, as they can never be archived.
        """
        if hot.start <= mark.archived:
            return mark.archived
        holes = (await self._rows.holes([shard.log_id])).get(shard.log_id, [])
        lost = unexplained([(max(mark.archived, mark.start), hot.start)], holes)
        if lost:
            facts = {"stream_id": key[0], "shard": key[1], "offsets": lost}
            logger.warning("records_lost_before_archive", extra=facts)
        await self._rows.skip(key, mark.archived, hot.start, self._clock.now_ms())
        return hot.start

    # Compact

    async def plan_compaction(self) -> int:
        """Submit a job for every namespace with files worth compacting; return their number."""
        crowded = await self._rows.crowded_hours(self._clock.now_ms())
        namespaces = {hour.namespace for hour in crowded}
        for namespace in sorted(namespaces):
            submit = partial(
                self._jobs.submit, namespace, JobKind.COMPACT, "all", {}, take_open=True
            )
            await self._isolation.visit("compaction", f"namespaces/{namespace}", submit, None)
        return len(namespaces)

    async def to_compact(self, namespace: str) -> list[list[ArchivedFile]]:
        """Return runs of adjacent files of a namespace, each to become one file; bounded."""
        now_ms = self._clock.now_ms()
        crowded = await self._rows.crowded_hours(now_ms, namespace)
        return [
            run for hour in crowded for run in to_compact(await self._rows.in_hour(hour), now_ms)
        ]


def _range(stream: Stream, shard: Shard, first: int, next_offset: int) -> LogRange:
    return LogRange(
        stream.name.namespace,
        stream.stream_id,
        shard.index,
        shard.log_id,
        first,
        next_offset,
        stream.is_view,
        stream.name.name,
    )
