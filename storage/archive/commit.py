"""Archive commit: adds copied or compacted files to the archive in one transaction.

A crash before the commit leaves files that no row names; they are collected later. Nothing else is to be undone.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import attrs
from msgspec.structs import replace

from storage.archive.trim import HotTrimmer
from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.archive import (
    ArchivedFile,
    CopyResult,
    LogRange,
    unexplained,
)
from storage.domain.clock import Clock
from storage.domain.errors import StreamNotFound
from storage.domain.jobs import Job, JobLease, JobState, Outcome
from storage.domain.names import StreamName
from storage.jobs import Jobs
from storage.postgres.repositories.archive_manifest import Advance, ArchiveRows

logger = logging.getLogger(__name__)

_TRIM_ENTRIES_MAX = 10_000  # entries


@attrs.define(eq=False, slots=False)
class ArchiveCommitter:
    """Commit of archive and compaction jobs, for the worker.

    Every verb raises StorageUnavailable.
    """

    _rows: ArchiveRows
    _catalog: Catalog
    _jobs: Jobs
    _trimmer: HotTrimmer
    _clock: Clock

    async def commit(
        self,
        claim: JobLease,
        copied: Sequence[CopyResult],
        progress: Mapping[str, Any] | None = None,
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
            ][: limits.JOB_FAILURES_LISTED_MAX],
        }

        def outcome(job: Job, late: Sequence[Advance]) -> Outcome:
            if job.spec.get("stream") is None or not (failures or late):
                return Outcome(state=JobState.DONE)
            if not failures:
                return self._jobs.requeue()  # another job was quicker, perhaps with less
            got_on = job if len(late) == len(advances) else replace(job, failures=0)
            return self._jobs.after_failure(got_on, next(iter(failures.values())))

        late = await self._rows.commit(claim, advances, result, self._clock.now_ms(), outcome)
        _log_failures(failures)
        moved = {advance.stream_id for advance in advances if advance not in late}
        await self._trim_hot(one.range for one in copied if one.range.stream_id in moved)
        return result

    async def _failures(self, copied: Sequence[CopyResult]) -> dict[LogRange, str]:
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

    async def _trim_hot(self, archived: Iterable[LogRange]) -> None:
        """Trim archived records from the hot store, so that their shards accept more."""
        for name in {StreamName(one.stream, one.namespace) for one in archived}:
            try:
                await self._trimmer.trim(await self._catalog.stream(name), _TRIM_ENTRIES_MAX)
            except StreamNotFound:
                continue  # deleted in the meantime

    async def commit_compaction(
        self,
        claim: JobLease,
        swaps: Sequence[tuple[Sequence[ArchivedFile], ArchivedFile]],
        progress: Mapping[str, Any],
    ) -> None:
        """Commit a compaction job: in each swap one file replaces several.

        Raises LeaseLost.
        """
        await self._rows.replace(claim, swaps, dict(progress), self._clock.now_ms())


def _log_failures(failures: Mapping[LogRange, str]) -> None:
    """Log each reason once, with an example range: an unreachable archive fails all ranges."""
    for why, ranges in _by_reason(failures).items():
        example = ranges[0]
        facts = {"stream": example.stream, "shard": example.shard, "first": example.first}
        counted = {"reason": why, "ranges": len(ranges)}
        logger.error("archive_ranges_failed", extra=facts | counted)


def _by_reason(failures: Mapping[LogRange, str]) -> dict[str, list[LogRange]]:
    by_reason: dict[str, list[LogRange]] = {}
    for log_range, why in failures.items():
        by_reason.setdefault(why, []).append(log_range)
    return by_reason


def _advances(copied: Sequence[CopyResult], failures: Mapping[LogRange, str]) -> list[Advance]:
    """Return how far each shard advances: up to its first range that failed."""
    advances: list[Advance] = []
    ordered = sorted(copied, key=lambda copy: (*_shard_of(copy), copy.range.first))
    for (stream_id, shard), of_shard in groupby(ordered, _shard_of):
        good: list[CopyResult] = []
        for copy in of_shard:
            if copy.range in failures or (good and good[-1].range.next != copy.range.first):
                break
            good.append(copy)
        if good:
            files = [file for copy in good for file in copy.files]
            first, last = good[0].range.first, good[-1].range.next
            advances.append(Advance(stream_id, shard, first, last, files))
    return advances


def _shard_of(copied: CopyResult) -> tuple[str, int]:
    return copied.range.stream_id, copied.range.shard
