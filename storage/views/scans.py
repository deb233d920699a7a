"""Batches of views, as the worker of a scan job or of a back-test commits them.

Each write checks the job's claim and locks the revision in its transaction, so what a worker that lost its job computed changes nothing.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import attrs
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.jobs import JobLease
from storage.domain.names import StreamName
from storage.domain.views.changes import RowDifference, RowUpdate, SinkReport
from storage.domain.views.final_position import FinalPosition
from storage.domain.views.plan import ViewBackTestSpec
from storage.domain.views.progress import (
    BatchRecord,
    RevisionReport,
    RevisionState,
    ViewBatch,
    ViewProgress,
    ViewRevision,
)
from storage.domain.views.row_key import SessionKey
from storage.domain.views.sink import ViewSink
from storage.domain.views.view import View, ViewSpec
from storage.postgres.repositories.view_batches import LockedRevision, StoredState, ViewBatchRows
from storage.postgres.repositories.views import ViewRows
from storage.postgres.repositories.views import ViewWithRevision as ScanRevision
from storage.views.outbox import ViewOutbox

__all__ = ["ScanRevision", "StoredState", "ViewConflict", "ViewScans", "ViewTooLarge"]

logger = logging.getLogger(__name__)


class ViewConflict(Exception):
    """The view was paused or deleted, or the batch began elsewhere; nothing was written."""


class ViewTooLarge(Exception):
    """The view would have more rows than its `rows_max`; nothing was written."""


@attrs.define(eq=False, slots=False)
class ViewScans:
    """Revisions as the worker of a scan job reads and writes them.

    Every method raises StorageUnavailable or StorageBusy, and may then be repeated; those with a claim raise LeaseLost.
    """

    _views: ViewRows
    _rows: ViewBatchRows
    _clock: Clock

    async def revisions(self, namespace: str, stream: str) -> list[ScanRevision]:
        """Return the revisions over a stream that are not stopped, of views that are not paused."""
        revisions = await self._views.over(StreamName(stream, namespace))
        return [
            scanned
            for scanned in revisions
            if not scanned.view.spec.paused and not scanned.revision.is_stopped
        ]

    async def next_windows(self, revision_id: str, after_ms: int) -> tuple[int | None, int | None]:
        """Return the ends of a revision's oldest window, and of the first one after a time."""
        return await self._views.next_windows(revision_id, after_ms)

    async def states(self, revision_id: str, keys: Sequence[bytes]) -> dict[bytes, StoredState]:
        """Return the states of the rows with these keys; a key without a row is absent."""
        return await self._rows.states(revision_id, keys) if keys else {}

    async def sessions(
        self, revision_id: str, keys: Sequence[SessionKey]
    ) -> dict[bytes, StoredState]:
        """Return the states of the rows whose sessions overlap or touch one of these, by key."""
        return await self._rows.sessions(revision_id, keys) if keys else {}

    async def commit(
        self, claim: JobLease, view: View, revision_id: str, batch: ViewBatch
    ) -> ViewProgress:
        """Store the rows and the progress of a batch in one transaction; return the progress.

        Rows whose windows ended `keep_ms` before the watermark are deleted, at most VIEW_SWEEP_ROWS. What the sinks of the active
        revision are to get is stored with it. Raises ViewConflict, also for a view that was paused, and ViewTooLarge.
        """
        async with self._rows.locked(claim, revision_id, running=view) as locked:
            if locked is None or not _is_at(locked.revision.progress, batch.before):
                raise ViewConflict
            is_active = locked.revision.state is RevisionState.ACTIVE
            return await self._store(locked, view.spec, locked.sinks if is_active else (), batch)

    async def _store(
        self,
        locked: LockedRevision,
        spec: ViewSpec,
        sinks: Sequence[ViewSink],
        batch: ViewBatch,
    ) -> ViewProgress:
        after, before = batch.after, locked.revision.progress
        now_ms = max(self._clock.now_ms(), before.changed_at_ms)  # batches are found by their times
        outbox = ViewOutbox(locked, sinks)
        await outbox.note_changes(batch.changes, before.final)
        replaced = [key for change in batch.changes for key in change.replaces]
        changed = [*replaced, *(change.key for change in batch.changes)]
        versions = before.versions + await locked.keep_versions(changed, after.batch)
        await locked.delete_rows(replaced)
        inserted = await locked.put_rows(batch.changes, after.batch, now_ms)
        final = await outbox.note_finals(before.final, after.watermark_ms)
        expired = await _expire(outbox, spec, after, final)
        deleted = len(replaced) + expired
        if locked.keeps_versions:
            versions += expired
        rows = before.rows + inserted - deleted
        if rows > spec.rows_max:
            raise ViewTooLarge(f"The view would have {rows} rows, more than {spec.rows_max}.")
        messages = await outbox.store(before.messages, after.batch)
        progress = replace(
            after,
            rows=rows,
            final=final,
            messages=messages,
            versions=versions,
            changed_at_ms=now_ms,
        )
        await locked.advance(progress, _record(batch, progress, deleted))
        return progress

    async def promote(
        self, claim: JobLease, view: View, revision_id: str, *, is_exact: bool = True
    ) -> None:
        """Let a revision that was built answer reads, in place of the active one.

        Sinks get the rows in which the two differ, and the report of a rebuild has them. The active one is kept as the former one
        for the view's `keep_former_ms`, unless it has stopped. `is_exact`: both include the same records, which their positions
        do not always show. No effect if it is active. Raises ViewConflict if it was deleted.
        """
        async with self._rows.locked(claim, revision_id, running=view) as locked:
            if locked is None:
                raise ViewConflict
            if locked.revision.state is RevisionState.BUILDING:
                await self._switch(locked, view, is_exact=is_exact)

    async def _switch(self, locked: LockedRevision, view: View, *, is_exact: bool) -> None:
        progress, former = locked.revision.progress, await locked.active()
        outbox, report, until_ms = ViewOutbox(locked, locked.sinks), None, None
        if former is not None:
            if locked.revision.is_rebuild:
                report = _new_report(locked.revision, former, is_exact=is_exact)
            async for updates in _differences(locked, former, report, outbox):
                outbox.note_updates(updates)
                messages = await outbox.store(progress.messages, progress.batch)
                progress = replace(progress, messages=messages)
                report = report and _with_updates(report, updates)
            if outbox.changes.has_finals:
                progress = replace(progress, final=former.progress.final)
            if view.spec.keep_former_ms and not former.is_stopped:
                until_ms = self._clock.now_ms() + view.spec.keep_former_ms
        await locked.promote(progress, former_until_ms=until_ms, report=report)
        if report is not None and report.samples:
            facts = {"view": str(view.name), "revision": locked.revision.number}
            logger.warning("view_rebuild_differs", extra=facts)

    async def fail(self, claim: JobLease, revision_id: str, failure: str, *, stop: bool) -> None:
        """Store the reason why a batch failed.

        The revision stops with `stop`, or after VIEW_FAILURES_MAX failures in a row. Its progress and its rows stay. No effect
        if it was deleted.
        """
        async with self._rows.locked(claim, revision_id) as locked:
            if locked is None:
                return
            failures = locked.revision.failures + 1
            is_stopped = stop or failures >= limits.VIEW_FAILURES_MAX
            reason = failure[: limits.JOB_FAILURE_CHARACTERS_MAX]
            await locked.update(failure=reason, failures=failures, is_stopped=is_stopped)
        if is_stopped:
            facts = {"revision": revision_id, "reason": reason}
            logger.warning("view_stopped", extra=facts)

    # Back-tests: revisions that no read and no scan sees, whose messages are counted

    async def begin_back_test(
        self, job_id: str, test: ViewBackTestSpec
    ) -> tuple[ViewRevision, ViewRevision]:
        """Return the revision of a back-test, and the snapshot that it is compared with.

        Another attempt at the job gets them as the last one left them. Raises ViewConflict if the view was deleted, and StorageBusy.
        """
        sinks = tuple(SinkReport(sink.label) for sink in test.spec.into)
        revision = ViewRevision(
            revision_id=job_id,
            view_id=test.view_id,
            number=0,
            query=test.spec.query,
            plan=test.plan,
            stream_id="",
            state=RevisionState.BACK_TEST,
            report=RevisionReport(
                former=0, is_exact=False, records=0, former_records=0, sinks=sinks
            ),
        )
        begun = await self._rows.begin_back_test(revision, f"{job_id}-snapshot")
        if begun is None:
            raise ViewConflict
        return begun

    async def commit_back_test(
        self, claim: JobLease, spec: ViewSpec, batch: ViewBatch
    ) -> ViewProgress:
        """Store a batch of a back-test as `commit` does; return the progress."""
        async with self._back_test(claim) as locked:
            if not _is_at(locked.revision.progress, batch.before):
                raise ViewConflict
            return await self._store(locked, spec, spec.into, batch)

    async def compare_back_test(
        self, claim: JobLease, snapshot: ViewRevision, *, is_exact: bool
    ) -> RevisionReport:
        """Return the differences between a back-test's rows and a snapshot, and its messages.

        `is_exact`: both include the same records.
        """
        async with self._back_test(claim) as locked:
            report = _new_report(locked.revision, snapshot, is_exact=is_exact)
            async for updates in locked.differences(snapshot.revision_id):
                report = _with_updates(report, updates)
            return report

    @asynccontextmanager
    async def _back_test(self, claim: JobLease) -> AsyncIterator[LockedRevision]:
        async with self._rows.locked(claim, claim.job_id) as locked:
            if locked is None:
                raise ViewConflict
            yield locked


async def _differences(
    locked: LockedRevision,
    former: ViewRevision,
    report: RevisionReport | None,
    outbox: ViewOutbox,
) -> AsyncIterator[Sequence[RowUpdate]]:
    """Yield the rows in which two revisions differ, if the sinks or a report need them."""
    if report is not None or outbox.changes.has_changes:
        async for updates in locked.differences(former.revision_id):
            yield updates


def _new_report(revision: ViewRevision, former: ViewRevision, *, is_exact: bool) -> RevisionReport:
    """Return a report without differences, with what a back-test has counted."""
    own, others = revision.progress, former.progress
    return RevisionReport(
        former=former.number,
        is_exact=is_exact,
        records=own.counts.records,
        former_records=others.counts.records,
        sinks=() if revision.report is None else revision.report.sinks,
    )


def _with_updates(report: RevisionReport, updates: Sequence[RowUpdate]) -> RevisionReport:
    differences = [RowDifference(update.before, update.after) for update in updates]
    return report.with_differences(differences, limits.VIEW_REPORT_SAMPLES)


def _is_at(progress: ViewProgress, before: ViewProgress) -> bool:
    """Return whether a batch that began at `before` continues a progress."""
    own, other = [
        (each.batch, each.positions, [one.positions for one in each.joined.values()])
        for each in (progress, before)
    ]
    return own == other


async def _expire(
    outbox: ViewOutbox, spec: ViewSpec, after: ViewProgress, final: FinalPosition | None
) -> int:
    """Delete rows that the view does not keep, once they were final; return how many."""
    if spec.keep_ms is None or after.watermark_ms is None or final is None:
        return 0
    until_ms = min(after.watermark_ms - spec.keep_ms, final.bound[0] - 1)
    return await outbox.expire(until_ms, after.batch)


def _record(batch: ViewBatch, after: ViewProgress, deleted: int) -> BatchRecord:
    before = batch.before
    return BatchRecord(
        batch=after.batch,
        before=before.positions,
        after=after.positions,
        joined={name: one.positions for name, one in after.joined.items()},
        watermark_ms=after.watermark_ms,
        counts=batch.counts,
        rows=len(batch.changes) + deleted,
        milliseconds=batch.milliseconds,
        at_ms=after.changed_at_ms,
        versions=after.versions,
    )
