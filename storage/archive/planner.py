"""Archiving: which logs are to be archived now, and what makes their files the archive's.

    plan     every few seconds, by one process: a job for each lane of a namespace that has something due
    due      by the worker that has the job: the ranges to copy, as they are now
    copy     by Spark: each range into files, which nobody knows of yet
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
    """What planner and worker do. Every verb raises StorageUnavailable."""

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
        """Ask for a job for every lane that has something due and none that is open; gives the lanes."""
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
        """The ranges that a job copies: what is due of a lane, or all there is of one stream.

        Bounded; what is left is due again as soon as these are archived.
        """
        found: list[LogRange] = []
        async for log in self._due(namespace, lane, stream):
            found += ranges_of(log)
            if len(found) >= limits.ARCHIVE_RANGES_PER_JOB:
                break
        return found

    async def _due(
        self, namespace: str | None = None, lane: int | None = None, name: str | None = None
    ) -> AsyncIterator[LogRange]:
        """What is to be archived, of each log from where it is archived to its end."""
        async for some in self._archived_streams(namespace, lane, name):
            marks = await self._rows.marks([stream.stream_id for stream in some])
            shards = [(stream, shard) for stream in some for shard in stream.shards]
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
        """Streams and views of queues that are to be archived."""
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
        asked: str | None,
    ) -> LogRange | None:
        """What of one log is to be archived now; all there is, if it was asked for."""
        key = (stream.stream_id, shard.index)
        mark = marks.get(key)
        at = LogAddress(stream.name.namespace, shard.log_id, stream.is_view)
        try:
            hot = await self._hot.backlog(
                at, 0 if mark is None else mark.archived, self._clock.script_time()
            )
        except LogNotReady:
            return None  # never written, or about to be made again
        if mark is None:
            await self._rows.begin(
                [_range(stream, shard, hot.start, hot.next)], self._clock.now_ms()
            )
            mark = Mark(hot.start, hot.start)
        first = await self._skipped(key, shard, mark, hot)
        backlog = Backlog(first, hot.next, hot.bytes, hot.waited_ms)
        wanted = asked is not None and first < hot.next
        budget = unarchived_bytes_max(stream.spec.hot_bytes_max)
        if wanted or is_due(backlog, stream.spec.archive_lag_ms, budget, closed=hot.closed):
            return _range(stream, shard, first, hot.next)
        return None

    async def _skipped(
        self, key: tuple[str, int], shard: Shard, mark: Mark, hot: HotBacklog
    ) -> int:
        """From where on the log is to be archived: what the hot store has no more, it never will be."""
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
        """The job's files become the archive's, and its attempt has come to its end. Gives its progress.

        Of each shard what follows a range that failed, or that lacks records, is left. A job for what is due of a lane
        is done all the same, since another will be planned; one that was asked for all of a stream has failed, and is
        begun again after a while. Raises LeaseLost, and then nothing happened.
        """
        failures = await self._failures(copied)
        advances = _advances(copied, failures)
        files = [file for advance in advances for file in advance.files]
        told = {
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

        late = await self._rows.commit(claim, advances, told, self._clock.now_ms(), outcome)
        _tell_of(failures)
        moved = {advance.stream_id for advance in advances if advance not in late}
        await self._make_room(one.range for one in copied if one.range.stream_id in moved)
        return told

    async def _failures(self, copied: Sequence[Copied]) -> dict[LogRange, str]:
        """The ranges that cannot be committed, and why."""
        failures = {one.range: one.failure for one in copied if one.failure}
        lacking = [one for one in copied if one.missing and not one.failure and not one.range.view]
        if not lacking:
            return failures
        holes = await self._rows.holes([one.range.log_id for one in lacking])
        marks = await self._rows.marks([one.range.stream_id for one in lacking])
        for one in lacking:
            mark = marks.get((one.range.stream_id, one.range.shard))
            if mark is None:
                continue  # deleted meanwhile: nothing of it will be committed
            known = max(mark.start, mark.archived)  # another job may have been quicker
            missing = [(max(first, known), last) for first, last in one.missing if last > known]
            lost = unexplained(missing, holes.get(one.range.log_id, []))
            if lost:
                failures[one.range] = f"The hot store has no records at {lost}."
        return failures

    async def _make_room(self, archived: Iterable[LogRange]) -> None:
        """What is archived now may leave the hot store, and its shard take more."""
        for name in {StreamName(one.stream, one.namespace) for one in archived}:
            try:
                await self._retention.trim(await self._catalog.stream(name), _TRIMMED_AT_ONCE)
            except StreamNotFound:
                continue  # deleted meanwhile

    # Compact

    async def plan_compaction(self) -> int:
        """Ask for a job for every namespace with files worth joining; gives their number."""
        crowded = await self._rows.crowded_hours(self._clock.now_ms())
        namespaces = {hour.namespace for hour in crowded}
        for namespace in sorted(namespaces):
            await self._jobs.submit(namespace, JobKind.COMPACT, "all", {}, take_open=True)
        return len(namespaces)

    async def to_compact(self, namespace: str) -> list[list[ArchivedFile]]:
        """Runs of neighbouring files of a namespace that are each to become one; a bounded number."""
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
        """The job is done: one file stands for several, of each swap. Raises LeaseLost."""
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
    """A line for each reason, with one of the ranges: an archive that is away fails them all."""
    for why, ranges in _by_reason(failures).items():
        one = ranges[0]
        facts = {"stream": one.stream, "shard": one.shard, "first": one.first}
        counted = {"reason": why, "ranges": len(ranges)}
        logger.error("ranges could not be archived", extra=facts | counted)


def _by_reason(failures: Mapping[LogRange, str]) -> dict[str, list[LogRange]]:
    found: dict[str, list[LogRange]] = {}
    for one, why in failures.items():
        found.setdefault(why, []).append(one)
    return found


def _advances(copied: Sequence[Copied], failures: Mapping[LogRange, str]) -> list[Advance]:
    """How far each shard gets: to its first range that failed."""
    advances: list[Advance] = []
    ordered = sorted(copied, key=lambda one: (*_shard_of(one), one.range.first))
    for (stream_id, shard), of_shard in groupby(ordered, _shard_of):
        good: list[Copied] = []
        for one in of_shard:
            if one.range in failures or (good and good[-1].range.next != one.range.first):
                break
            good.append(one)
        if good:
            files = [file for one in good for file in one.files]
            first, last = good[0].range.first, good[-1].range.next
            advances.append(Advance(stream_id, shard, first, last, files))
    return advances


def _shard_of(copied: Copied) -> tuple[str, int]:
    return copied.range.stream_id, copied.range.shard
