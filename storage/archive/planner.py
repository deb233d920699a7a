"""Archive planner: selects the logs to archive now, and commits the copied files.

    plan     every few seconds, by one process: a job for each lane of a namespace that has something due
    due      by the worker that has the job: the ranges to copy, as they are now
    copy     by Spark: each range into files, which no row names yet
    commit   checked for gaps; then the files, `archived` and the end of the job in one transaction

A crash before the commit leaves files that no row names; they are collected later. Nothing else is to be undone.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec.structs import replace

from storage.archive.trim import HotTrimmer
from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.archive import (
    ArchivedFile,
    Backlog,
    Copied,
    LogRange,
    is_due,
    lane_of,
    ranges_of,
    to_compact,
    unarchived_bytes_max,
    unexplained,
)
from storage.domain.clock import Clock
from storage.domain.errors import StreamNotFound
from storage.domain.jobs import Claim, Job, JobKind, JobState, Outcome
from storage.domain.names import StreamName
from storage.domain.streams.stream import Shard, Stream, view_of
from storage.jobs import Jobs
from storage.postgres.repositories.archive_manifest import Advance, ArchiveRows, Mark
from storage.redis.keys import LogAddress
from storage.redis.streams.logs import HotBacklog, HotLogs
from storage.redis.transport.script_status import LogNotReady

logger = logging.getLogger(__name__)

_TRIMMED_AT_ONCE = 10_000  # entries


class Archiving:
    """Planning and commit of archive jobs, for planner and worker.

    Every verb raises StorageUnavailable.
    """

    def __init__(
        self,
        rows: ArchiveRows,
        hot: HotLogs,
        catalog: Catalog,
        jobs: Jobs,
        retention: HotTrimmer,
        clock: Clock,
    ) -> None:
        self._rows = rows
        self._hot = hot
        self._catalog = catalog
        self._jobs = jobs
        self._retention = retention
        self._clock = clock

    # Plan

    async def plan(self) -> int:
        """Submit a job for every lane with due logs and no open job; return the number of lanes."""
        lanes: set[tuple[str, int]] = set()
        async for log in self._due():
            lanes.add((log.namespace, lane_of(log.stream_id)))
        for namespace, lane in sorted(lanes):
            await self._jobs.submit(
                namespace, JobKind.ARCHIVE, f"lane {lane}", {"lane": lane}, take_open=True
            )
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
            for begin in range(0, len(shards), limits.ARCHIVE_LOGS_AT_ONCE):
                part = shards[begin : begin + limits.ARCHIVE_LOGS_AT_ONCE]
                looks = [self._look(stream, shard, marks, name) for stream, shard in part]
                for log in await asyncio.gather(*looks):
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
        async for stream in self._catalog.every_stream():
            if stream.spec.archive:
                yield stream
        async for queue in self._catalog.archived_queues():
            yield view_of(queue)

    async def _look(
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
        first = await self._skipped(key, shard, mark, hot)
        backlog = Backlog(first, hot.next, hot.bytes, hot.waited_ms)
        is_requested = requested is not None and first < hot.next
        budget = unarchived_bytes_max(stream.spec.hot_bytes_max)
        if is_requested or is_due(backlog, stream.spec.archive_lag_ms, budget, closed=hot.closed):
            return _range(stream, shard, first, hot.next)
        return None

    async def _skipped(
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
            logger.warning("records left the hot store before they were archived", extra=facts)
        await self._rows.skip(key, mark.archived, hot.start, self._clock.now_ms())
        return hot.start

    # Commit

    async def commit(
        self, claim: Claim, copied: Sequence[Copied], progress: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Commit the job's files to the archive and end its attempt; return the job's progress.

        In each shard, ranges behind one that failed, or that lacks records, are left. A job for what is due of a lane
        is done all the same, since another will be planned; one that was requested for all of a stream has failed, and is
        retried after a while. Raises LeaseLost, and then nothing happened.
        """
        failures = await self._failures(copied)
        advances = _advances(copied, failures)
        files = [file for advance in advances for file in advance.files]
        result = {
            **(progress or {}),
            "records": sum(file.records for file in files),
            "files": len(files),
            "file_bytes": sum(file.file_bytes for file in files),
            "failures": [
                {"stream": one.stream, "shard": one.shard, "first": one.first, "failure": why}
                for one, why in failures.items()
            ][: limits.JOB_FAILURES_TOLD_MAX],
        }

        def outcome(job: Job, late: Sequence[Advance]) -> Outcome:
            if job.spec.get("stream") is None or not (failures or late):
                return Outcome(state=JobState.DONE)
            if not failures:
                return self._jobs.once_more()  # another job was quicker, perhaps with less
            got_on = job if len(late) == len(advances) else replace(job, failures=0)
            return self._jobs.after_failure(got_on, next(iter(failures.values())))

        late = await self._rows.commit(claim, advances, result, self._clock.now_ms(), outcome)
        _tell_of(failures)
        moved = {advance.stream_id for advance in advances if advance not in late}
        await self._make_room(one.range for one in copied if one.range.stream_id in moved)
        return result

    async def _failures(self, copied: Sequence[Copied]) -> dict[LogRange, str]:
        """Return the ranges that cannot be committed, and the reasons."""
        failures = {copy.range: copy.failure for copy in copied if copy.failure}
        lacking = [
            copy for copy in copied if copy.missing and not copy.failure and not copy.range.view
        ]
        if not lacking:
            return failures
        holes = await self._rows.holes([copy.range.log_id for copy in lacking])
        marks = await self._rows.marks([copy.range.stream_id for copy in lacking])
        for copy in lacking:
            mark = marks.get((copy.range.stream_id, copy.range.shard))
            if mark is None:
                continue  # deleted in the meantime: nothing of it will be committed
            archived = max(mark.start, mark.archived)  # another job may have been quicker
            missing = [
                (max(first, archived), last) for first, last in copy.missing if last > archived
            ]
            lost = unexplained(missing, holes.get(copy.range.log_id, []))
            if lost:
                failures[copy.range] = f"The hot store no longer has the records at {lost}."
        return failures

    async def _make_room(self, archived: Iterable[LogRange]) -> None:
        """Trim archived records from the hot store, so that their shards accept more."""
        for name in {StreamName(one.stream, one.namespace) for one in archived}:
            try:
                await self._retention.trim(await self._catalog.stream(name), _TRIMMED_AT_ONCE)
            except StreamNotFound:
                continue  # deleted in the meantime

    # Compact

    async def plan_compaction(self) -> int:
        """Submit a job for every namespace with files worth compacting; return their number."""
        crowded = await self._rows.crowded_hours(self._clock.now_ms())
        namespaces = {hour.namespace for hour in crowded}
        for namespace in sorted(namespaces):
            await self._jobs.submit(namespace, JobKind.COMPACT, "all", {}, take_open=True)
        return len(namespaces)

    async def to_compact(self, namespace: str) -> list[list[ArchivedFile]]:
        """Return runs of adjacent files of a namespace, each to become one file; bounded."""
        now_ms = self._clock.now_ms()
        crowded = await self._rows.crowded_hours(now_ms, namespace)
        return [
            run for hour in crowded for run in to_compact(await self._rows.in_hour(hour), now_ms)
        ]

    async def commit_compacted(
        self,
        claim: Claim,
        swaps: Sequence[tuple[Sequence[ArchivedFile], ArchivedFile]],
        progress: Mapping[str, Any],
    ) -> None:
        """Commit a compaction job: in each swap one file replaces several.

        Raises LeaseLost.
        """
        await self._rows.replace(claim, swaps, dict(progress), self._clock.now_ms())


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


def _tell_of(failures: Mapping[LogRange, str]) -> None:
    """Log each reason once, with an example range: an unreachable archive fails all ranges."""
    for why, ranges in _by_reason(failures).items():
        example = ranges[0]
        facts = {"stream": example.stream, "shard": example.shard, "first": example.first}
        counted = {"reason": why, "ranges": len(ranges)}
        logger.error("ranges could not be archived", extra=facts | counted)


def _by_reason(failures: Mapping[LogRange, str]) -> dict[str, list[LogRange]]:
    by_reason: dict[str, list[LogRange]] = {}
    for log_range, why in failures.items():
        by_reason.setdefault(why, []).append(log_range)
    return by_reason


def _advances(copied: Sequence[Copied], failures: Mapping[LogRange, str]) -> list[Advance]:
    """Return how far each shard advances: up to its first range that failed."""
    advances: list[Advance] = []
    ordered = sorted(copied, key=lambda copy: (*_shard_of(copy), copy.range.first))
    for (stream_id, shard), of_shard in groupby(ordered, _shard_of):
        good: list[Copied] = []
        for copy in of_shard:
            if copy.range in failures or (good and good[-1].range.next != copy.range.first):
                break
            good.append(copy)
        if good:
            files = [file for copy in good for file in copy.files]
            first, last = good[0].range.first, good[-1].range.next
            advances.append(Advance(stream_id, shard, first, last, files))
    return advances


def _shard_of(copied: Copied) -> tuple[str, int]:
    return copied.range.stream_id, copied.range.shard
