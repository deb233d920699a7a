"""Scan job: keeps the views over a stream up to date while there are any.

    revisions with equal positions ──▶ one read ──▶ one Spark job: partial aggregates of all
                                                ──▶ one Spark job: merged with the stored states
                                                ──▶ for each: one transaction with rows, positions, messages for sinks
                                                ──▶ sinks

A batch is committed only if the revision is where the batch began, and the job's claim still holds, so what a killed or delayed worker
computed changes nothing.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from spark_worker.runtime.cluster import cause_of
from spark_worker.runtime.fault_points import fault
from spark_worker.runtime.job_context import JobContext, JobStopped
from spark_worker.views.cohorts import Cohorts, has_started
from spark_worker.views.executor import Computed
from spark_worker.views.failure import ViewFailed
from spark_worker.views.inputs.activity import ShardActivity
from spark_worker.views.inputs.backlog import (
    BatchRecords,
    first_positions,
    records_until,
    with_backlog,
)
from spark_worker.views.inputs.reads import Caps, has_news, read_streams, wait_for_records
from spark_worker.views.processor import BatchProcessor
from spark_worker.views.step import batch_of, is_final, move_batch, tick_batch
from storage.concurrency.tasks import in_batches
from storage.domain import limits
from storage.domain.errors import StreamNotFound, StreamRecreated
from storage.domain.jobs import LeaseLost, wait_after_ms
from storage.domain.names import StreamName, ViewName
from storage.domain.streams.stream import StreamRead
from storage.domain.views.progress import ViewBatch, ViewRevision
from storage.views.scans import ScanRevision, ViewConflict, ViewTooLarge
from storage.views.sinks import OnSent

logger = logging.getLogger(__name__)

_DELETED = "The stream was deleted."

OnBatch = Callable[[ViewName, ViewBatch], object]
"""Called with each committed batch of a view."""

Windows = tuple[int | None, int | None]
"""Ends of the oldest window and of the next one that ends, in event time."""


class ScanSpec(msgspec.Struct, frozen=True):
    """Specification of a scan job."""

    stream: str


def scan(work: JobContext, on_batch: OnBatch, on_sent: OnSent) -> Mapping[str, Any]:
    """Keep the views over a stream up to date until there are none, or the job must stop."""
    stream = StreamName(work.spec(ScanSpec).stream, work.job.namespace)
    return _Scan(work, stream, on_batch, on_sent).run()


class _Scan:
    """Scan of one stream.

    `_blocked`: when a revision that failed is tried again. `_behind`: views that wait for a sink. `_idle`: revisions that had nothing to
    read in the last round. `_windows`: ends of the windows that a revision had after a batch. `_expiries`: watermark at which the next record
    of an outer join ceases to wait, after a batch.
    """

    def __init__(
        self, work: JobContext, stream: StreamName, on_batch: OnBatch, on_sent: OnSent
    ) -> None:
        self._work = work
        self._stream = stream
        self._on_batch = on_batch
        self._on_sent = on_sent
        self._scans = work.storage.view_scans
        self._processor = BatchProcessor(work)
        self._activity = ShardActivity()
        self._blocked: dict[str, float] = {}
        self._behind: set[str] = set()
        self._idle: set[str] = set()
        self._cohorts = Cohorts((), self._idle)
        self._windows: dict[str, tuple[int, Windows]] = {}
        self._expiries: dict[str, tuple[int, int | None]] = {}
        self._batches = 0

    def run(self) -> Mapping[str, Any]:
        """Run batches; return the progress."""
        try:
            while every := self._revisions():
                self._work.check()
                self._work.require_spark()
                if self._promote():
                    continue
                started = time.monotonic()
                cohorts = self._cohorts.by_read(self._is_blocked)
                idle = [cohort for cohort in cohorts if not self._advance(cohort)]
                without_news = [entry for cohort in idle for entry in cohort]
                self._idle = {entry.revision.revision_id for entry in without_news}
                has_ticked = any([self._tick(one) for one in without_news])
                self._deliver(every)
                if idle == cohorts and not has_ticked:
                    self._wait(cohorts)
                else:
                    self._pace(started)
            progress = {"batches": self._batches}
            self._work.call(self._work.storage.view_scan_jobs.end(self._work.claim, progress))
        except LeaseLost:
            raise JobStopped from None
        return progress

    def _revisions(self) -> list[ScanRevision]:
        every = self._work.call(self._scans.revisions(self._stream.namespace, self._stream.name))
        ids = [entry.revision.revision_id for entry in every]
        self._blocked = {entry: until for entry, until in self._blocked.items() if entry in ids}
        self._windows = {entry: ends for entry, ends in self._windows.items() if entry in ids}
        self._expiries = {entry: at for entry, at in self._expiries.items() if entry in ids}
        self._activity.keep(ids)
        self._cohorts = Cohorts(every, self._idle)
        self._processor.keep([entry.revision for entry in every])
        return every

    def _is_blocked(self, entry: ScanRevision) -> bool:
        if entry.view.view_id in self._behind:
            return True
        return self._blocked.get(entry.revision.revision_id, 0) > time.monotonic()

    def _deliver(self, entries: Sequence[ScanRevision]) -> None:
        """Send what sinks are owed; views that wait for a sink get no batches."""
        views = {entry.view.view_id: entry.view for entry in entries}
        sinks = self._work.storage.view_sinks
        behind = self._work.call(sinks.deliver([*views.values()], self._on_sent))
        self._behind = {*(self._behind - views.keys()), *behind}

    def _wait(self, cohorts: Sequence[Sequence[ScanRevision]]) -> None:
        """Wait until the stream may have records, or it is time to look for other views."""
        at_the_end = [
            cohort[0].revision for cohort in cohorts if self._cohorts.cap(cohort[0]) is None
        ]
        if not at_the_end:
            self._work.sleep(limits.VIEW_SCAN_WAIT_MS / limits.SECOND_MS)
            return
        waiting = wait_for_records(
            self._work.storage, self._stream.namespace, at_the_end, limits.VIEW_SCAN_WAIT_MS
        )
        with suppress(StreamNotFound, StreamRecreated):  # the next round reads it, and says so
            self._work.call(waiting)

    def _pace(self, started: float) -> None:
        """Let records gather for the next round of batches."""
        self._work.sleep(max(0.0, limits.VIEW_PACE_MS / limits.SECOND_MS - _since(started)))

    def _promote(self) -> bool:
        """Promote building revisions that have caught up; return whether there was one."""
        is_promoted = False
        for entry in self._cohorts.caught_up():
            revision_id = entry.revision.revision_id
            try:
                promoting = self._scans.promote(
                    self._work.claim,
                    entry.view,
                    revision_id,
                    is_exact=self._cohorts.include_the_same(entry),
                )
                self._work.call(promoting)
            except ViewConflict:
                continue  # it was replaced: the next round looks again
            fault("view.promoted")
            is_promoted = True
        return is_promoted

    # A batch of revisions with equal positions

    def _advance(self, cohort: Sequence[ScanRevision]) -> bool:
        """Run a batch; return whether there may be more."""
        started = time.monotonic()
        if not has_started(cohort[0].revision):
            return self._start(cohort)
        caps = self._cohorts.cap(cohort[0])
        reads = self._read(cohort, caps)
        if not any(map(has_news, reads)):
            return False
        for entry in cohort:
            self._activity.note(entry.revision, reads)
        records = self._with_backlog(cohort, reads, caps)
        fault("view.read")
        self._run(cohort, records, started)
        return True

    def _run(self, cohort: Sequence[ScanRevision], records: BatchRecords, started: float) -> None:
        """Compute and commit a batch of what was read."""
        cohort = self._prepared(cohort)
        computed = self._processor.compute([entry.revision for entry in cohort], records)
        fault("view.computed")
        finish = partial(self._finish, records, computed, started)
        self._work.call(in_batches(cohort, finish, limits.VIEW_TRANSACTIONS_AT_ONCE))
        self._batches += 1
        progress = {"batches": self._batches}
        self._work.call(self._work.storage.jobs.save_progress(self._work.claim, progress))

    def _with_backlog(
        self, cohort: Sequence[ScanRevision], reads: Sequence[StreamRead], caps: Caps | None
    ) -> BatchRecords:
        """Return the read of a stream with more records behind it, unless a batch has just failed."""
        revisions = [entry.revision for entry in cohort]
        idle = {one.revision_id: self._activity.idle(one) for one in revisions}
        if len(reads) > 1 or any(revision.failures for revision in revisions):
            return BatchRecords(reads, idle=idle)
        [read], cap = reads, None if caps is None else caps[0]
        records_max = limits.VIEW_BACKLOG_RECORDS // self._cohorts.count
        reading = with_backlog(self._work.storage, self._stream, read, records_max, cap)
        return self._work.call(reading)._replace(idle=idle)

    def _prepared(self, cohort: Sequence[ScanRevision]) -> list[ScanRevision]:
        """Return the revisions that can be computed; the others stop."""
        reasons = self._processor.prepare([entry.revision for entry in cohort])
        for entry in cohort:
            if reason := reasons.get(entry.revision.revision_id):
                self._stop([entry], reason)
        return [entry for entry in cohort if entry.revision.revision_id not in reasons]

    def _start(self, cohort: Sequence[ScanRevision]) -> bool:
        """Set the first positions of revisions that do not start at the oldest records."""
        for entry in cohort:
            try:
                starting = first_positions(
                    self._work.storage,
                    self._stream.namespace,
                    entry.revision,
                    entry.view.created_at_ms,
                )
                positions = self._work.call(starting)
            except (StreamNotFound, StreamRecreated):
                self._stop([entry], _DELETED)
            else:
                self._work.call(self._store(entry, move_batch(entry.revision, positions)))
        return True

    def _read(self, cohort: Sequence[ScanRevision], caps: Caps | None) -> Sequence[StreamRead]:
        """Read behind the positions of a cohort; nothing if a stream is gone."""
        storage, namespace = self._work.storage, self._stream.namespace
        try:
            return self._work.call(read_streams(storage, namespace, cohort[0].revision, caps))
        except (StreamNotFound, StreamRecreated):
            self._stop(cohort, _DELETED)
            return ()

    # Ticks: batches without records

    def _tick(self, entry: ScanRevision) -> bool:
        """Let the watermark follow the clock while all shards are idle, if something ends by that.

        Also finish what a batch left of its final rows. Returns whether there was a batch.
        """
        revision, progress = entry.revision, entry.revision.progress
        has_ends = revision.plan.has_windows or revision.plan.join_preserved
        if not has_ends or progress.watermark_ms is None:
            return False
        if revision.plan.has_windows and not is_final(progress):
            self._work.call(self._store(entry, tick_batch(revision, progress.watermark_ms)))
            return True
        watermark_ms = self._cohorts.watermark_behind(entry)
        if watermark_ms is None:
            watermark_ms = self._activity.watermark(revision)
            due_ms = self._next_due(entry) if watermark_ms > progress.watermark_ms else None
            if due_ms is None or watermark_ms < due_ms:
                return False
        if revision.plan.join_preserved:
            records = records_until(revision, watermark_ms)
            self._run([entry], records, time.monotonic())
        else:
            self._work.call(self._store(entry, tick_batch(revision, watermark_ms)))
        return True

    def _next_due(self, entry: ScanRevision) -> int | None:
        """Return the watermark at which the next window or wait of an outer join ends.

        Or that at which the rows of a window are deleted.
        """
        ends_ms = []
        if entry.revision.plan.has_windows:
            ends_ms.append(self._next_window(entry))
        if entry.revision.plan.join_preserved:
            ends_ms.append(self._next_expiry(entry.revision))
        return min((end for end in ends_ms if end is not None), default=None)

    def _next_expiry(self, revision: ViewRevision) -> int | None:
        """Return when the next record of an outer join ceases to wait; at once if it is not known."""
        progress = revision.progress
        batch, expiry_ms = self._expiries.get(revision.revision_id, (-1, None))
        return expiry_ms if batch == progress.batch else progress.watermark_ms

    def _next_window(self, entry: ScanRevision) -> int | None:
        revision, progress = entry.revision, entry.revision.progress
        batch, windows = self._windows.get(revision.revision_id, (-1, (None, None)))
        if batch != progress.batch:
            reading = self._scans.next_windows(revision.revision_id, progress.watermark_ms or 0)
            windows = self._work.call(reading)
            self._windows[revision.revision_id] = progress.batch, windows
        oldest_ms, next_ms = windows
        keep_ms = entry.view.spec.keep_ms
        expires_ms = None if oldest_ms is None or keep_ms is None else oldest_ms + keep_ms
        return min((due for due in (next_ms, expires_ms) if due is not None), default=None)

    # Its end, in the worker's event loop

    async def _finish(
        self,
        records: BatchRecords,
        computed: Mapping[str, Computed | Exception],
        started: float,
        entry: ScanRevision,
    ) -> None:
        """Commit the result of a revision, or note its failure."""
        result = computed[entry.revision.revision_id]
        if isinstance(result, Exception):
            await self._fail(entry, cause_of(result), stop=isinstance(result, ViewFailed))
            return
        try:
            batch = batch_of(
                entry.revision,
                records,
                result,
                tables=self._processor.table_positions(entry.revision),
                milliseconds=int(_since(started) * limits.SECOND_MS),
            )
            await self._store(entry, batch)
            self._expiries[entry.revision.revision_id] = batch.after.batch, result.expiry_ms
        except (ViewFailed, ViewTooLarge) as error:
            await self._fail(entry, str(error), stop=True)

    async def _store(self, entry: ScanRevision, batch: ViewBatch) -> None:
        """Commit a batch, unless the revision was changed or deleted meanwhile."""
        revision_id = entry.revision.revision_id
        try:
            await self._scans.commit(self._work.claim, entry.view, revision_id, batch)
        except ViewConflict:
            return
        fault("view.committed")
        self._blocked.pop(revision_id, None)
        self._on_batch(entry.view.name, batch)

    async def _fail(self, entry: ScanRevision, failure: str, *, stop: bool) -> None:
        """Note a failure; the revision is tried again after a while, and stops after several."""
        facts = {"view": str(entry.view.name), "reason": failure}
        logger.warning("view_batch_failed", extra=facts)
        revision = entry.revision
        await self._scans.fail(self._work.claim, revision.revision_id, failure, stop=stop)
        wait_ms = wait_after_ms(revision.failures + 1, limits.JOB_BACKOFF_MS_MIN)
        self._blocked[revision.revision_id] = time.monotonic() + wait_ms / limits.SECOND_MS

    def _stop(self, cohort: Sequence[ScanRevision], failure: str) -> None:
        for entry in cohort:
            self._work.call(self._fail(entry, failure, stop=True))


def _since(started: float) -> float:
    return time.monotonic() - started
