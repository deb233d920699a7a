"""Archive commit: adds copied or compacted files to the archive in one transaction.

A crash before the commit leaves files that no row names; they are collected later. Nothing else is to be undone.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import attrs
import msgspec
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


class Committed(msgspec.Struct, frozen=True):
    """Files that an attempt has committed.

    `failures`: the ranges that were not committed, and why. `is_late`: another job was quicker in some shard;
    `has_advanced`: this job was in some other.
    """

    records: int = 0
    files: int = 0
    file_bytes: int = 0
    failures: Mapping[LogRange, str] = {}
    is_late: bool = False
    has_advanced: bool = False

    def plus(self, advances: Sequence[Advance], failures: Mapping[LogRange, str]) -> "Committed":
        """Return this with a part's files and failures."""
        files = [file for advance in advances for file in advance.files]
        return replace(
            self,
            records=self.records + sum(file.records for file in files),
            files=self.files + len(files),
            file_bytes=self.file_bytes + sum(file.file_bytes for file in files),
            failures={**self.failures, **failures},
        )

    def after(self, advances: Sequence[Advance], late: Sequence[Advance]) -> "Committed":
        """Return this after a commit of `advances`, in `late` of which another job was quicker."""
        return replace(
            self,
            is_late=self.is_late or bool(late),
            has_advanced=self.has_advanced or len(late) < len(advances),
        )

    def may_continue(self, log_range: LogRange) -> bool:
        """Return whether no range of the same shard has failed."""
        shard = (log_range.stream_id, log_range.shard)
        return all((failed.stream_id, failed.shard) != shard for failed in self.failures)

    def progress(self) -> dict[str, Any]:
        """Return it as the progress of the job."""
        return {
            "records": self.records,
            "files": self.files,
            "file_bytes": self.file_bytes,
            "failures": [
                {"stream": one.stream, "shard": one.shard, "first": one.first, "failure": why}
                for one, why in self.failures.items()
            ][: limits.JOB_FAILURES_LISTED_MAX],
        }


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

    async def commit_part(
        self, claim: JobLease, copied: Sequence[CopyResult], before: Committed | None = None
    ) -> Committed:
        """Commit files of the job to the archive while its attempt continues; return the total.

        A lost worker loses no more than the part that it was copying, and a job that makes progress is not given up. In each
        shard, ranges behind one that failed, or that lacks records, are left. Raises LeaseLost, and then nothing happened.
        """
        return await self._commit(claim, copied, before, None)

    async def commit(
        self, claim: JobLease, copied: Sequence[CopyResult], before: Committed | None = None
    ) -> dict[str, Any]:
        """Commit the last part, and end the attempt; return the job's progress.

        A job for what is due of a lane is done despite failures, since another will be planned; one that was requested for
        all of a stream has failed, and is retried after a while. Raises LeaseLost, and then nothing happened.
        """

        def outcome(job: Job, committed: Committed) -> Outcome:
            if job.spec.get("stream") is None or not (committed.failures or committed.is_late):
                return Outcome(state=JobState.DONE)
            if not committed.failures:
                return self._jobs.requeue()  # another job was quicker, perhaps with less
            got_on = replace(job, failures=0) if committed.has_advanced else job
            return self._jobs.after_failure(got_on, next(iter(committed.failures.values())))

        committed = await self._commit(claim, copied, before, outcome)
        _log_failures(committed.failures)
        return committed.progress()

    async def _commit(
        self,
        claim: JobLease,
        copied: Sequence[CopyResult],
        before: Committed | None,
        outcome: Callable[[Job, Committed], Outcome] | None,
    ) -> Committed:
        failures = await self._failures(copied)
        advances = _advances(copied, failures)
        committed = (before or Committed()).plus(advances, failures)

        late = await self._rows.commit(
            claim,
            advances,
            committed.progress(),
            self._clock.now_ms(),
            outcome and (lambda job, late: outcome(job, committed.after(advances, late))),
        )
        moved = {(one.stream_id, one.shard) for one in advances if one not in late}
        await self._trim_hot(copy.range for copy in copied if _shard_of(copy) in moved)
        return committed.after(advances, late)

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
        shards: dict[StreamName, set[int]] = {}
        for log in archived:
            shards.setdefault(StreamName(log.stream, log.namespace), set()).add(log.shard)
        for name, moved in shards.items():
            try:
                stream = await self._catalog.stream(name)
                await self._trimmer.trim(stream, _TRIM_ENTRIES_MAX, moved)
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
