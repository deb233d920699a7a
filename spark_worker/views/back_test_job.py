"""Back-test job: computes rows of another configuration, and compares them with a view's.

    snapshot of the present rows ──▶ batches up to its positions ──▶ windows that have ended ──▶ differences, messages

A batch commits its rows, its progress and the count of its messages together, so an attempt that is lost costs one batch.
"""

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from spark_worker.runtime.cluster import cause_of
from spark_worker.runtime.fault_points import fault
from spark_worker.runtime.job_context import (
    JobContext,
    JobStopped,
    PermanentFailure,
    TransientFailure,
)
from spark_worker.views.cohorts import has_started
from spark_worker.views.failure import ViewFailed
from spark_worker.views.inputs.backlog import (
    BatchRecords,
    first_positions,
    records_until,
    with_backlog,
)
from spark_worker.views.inputs.marks import watermark_beside
from spark_worker.views.inputs.reads import has_news, read_streams
from spark_worker.views.processor import BatchProcessor
from spark_worker.views.step import batch_of, is_final, move_batch, tick_batch
from storage.domain import limits
from storage.domain.errors import StreamNotFound, StreamRecreated
from storage.domain.jobs import LeaseLost
from storage.domain.names import StreamName
from storage.domain.views.plan import ViewBackTestSpec
from storage.domain.views.progress import FollowedStream, ViewBatch
from storage.views.scans import ViewConflict, ViewTooLarge


def run(work: JobContext) -> Mapping[str, Any]:
    """Run a back-test; return its result."""
    test = work.spec(ViewBackTestSpec)
    work.require_spark()
    work.acquire_long_slot()
    try:
        return _BackTest(work, test).run()
    except LeaseLost:
        raise JobStopped from None
    except ViewConflict:
        raise PermanentFailure("The view was deleted.") from None
    except (StreamNotFound, StreamRecreated):
        raise PermanentFailure("The stream was deleted.") from None
    except (ViewFailed, ViewTooLarge) as error:
        raise PermanentFailure(str(error)) from None


class _BackTest:
    """One attempt at a back-test."""

    def __init__(self, work: JobContext, test: ViewBackTestSpec) -> None:
        self._work = work
        self._test = test
        self._scans = work.storage.view_scans
        self._stream = StreamName(test.spec.query.input.stream, work.job.namespace)
        self._processor = BatchProcessor(work)
        self._revision, self._snapshot = work.call(
            self._scans.begin_back_test(work.job.job_id, test)
        )

    def run(self) -> Mapping[str, Any]:
        if not has_started(self._revision):
            created_at_ms = self._test.created_at_ms
            starting = first_positions(
                self._work.storage, self._stream.namespace, self._revision, created_at_ms
            )
            self._commit(move_batch(self._revision, self._work.call(starting)))
        while self._advance():
            self._work.report(self._progress())
            self._work.call(
                self._work.storage.jobs.save_progress(self._work.claim, self._progress())
            )
            fault("view_back_test.saved")
            self._work.check()
        self._end_windows()
        comparing = self._scans.compare_back_test(
            self._work.claim, self._snapshot, is_exact=self._is_exact()
        )
        return {**self._progress(), "result": msgspec.to_builtins(self._work.call(comparing))}

    def _progress(self) -> Mapping[str, int]:
        return {
            "records": self._revision.progress.counts.records,
            "records_total": self._snapshot.progress.counts.records,
        }

    def _advance(self) -> bool:
        """Run a batch; return False if the rows include what the snapshot includes."""
        started = time.monotonic()
        records = self._read()
        if records is None:
            return False
        if any(map(has_news, records.reads)):
            self._run(records, started)
        else:
            positions = [read.positions for read in records.reads]
            self._commit(move_batch(self._revision, positions))
        return True

    def _run(self, records: BatchRecords, started: float) -> None:
        """Compute and commit a batch of what was read."""
        revision = self._revision
        if reason := self._processor.prepare([revision]).get(revision.revision_id):
            raise PermanentFailure(reason)
        computed = self._processor.compute([revision], records)[revision.revision_id]
        if isinstance(computed, ViewFailed):
            raise computed
        if isinstance(computed, Exception):
            raise TransientFailure(cause_of(computed)) from computed
        batch = batch_of(
            revision,
            records,
            computed,
            tables=self._processor.table_positions(revision),
            milliseconds=int((time.monotonic() - started) * limits.SECOND_MS),
        )
        self._commit(batch)

    def _read(self) -> BatchRecords | None:
        """Read what comes next; None if nothing is left of what the snapshot includes."""
        storage, namespace = self._work.storage, self._stream.namespace
        caps = [followed.progress.positions for followed in self._snapshot.streams]
        reads = self._work.call(read_streams(storage, namespace, self._revision, caps))
        before = [followed.progress.positions for followed in self._revision.streams]
        if [read.positions for read in reads] == before and not any(map(has_news, reads)):
            return None
        if len(reads) > 1 or self._test.spec.into:
            # a larger batch has fewer changes for sinks than the view had
            return BatchRecords(reads)
        records_max = limits.VIEW_BACKLOG_RECORDS
        [read], [cap] = reads, caps
        return self._work.call(with_backlog(storage, self._stream, read, records_max, cap))

    def _end_windows(self) -> None:
        """Advance the watermark to that of the snapshot, and finish the rows that are final."""
        revision, watermark_ms = self._revision, self._revision.progress.watermark_ms
        if watermark_ms is None:
            return
        at_ms = watermark_beside(revision, self._snapshot)
        if at_ms is not None and at_ms > watermark_ms:
            if revision.plan.join_preserved:
                self._run(records_until(revision, at_ms), time.monotonic())
            else:
                self._commit(tick_batch(revision, at_ms))
        while not is_final(self._revision.progress):
            self._commit(tick_batch(self._revision, self._revision.progress.watermark_ms or 0))

    def _is_exact(self) -> bool:
        """Return whether the streams still have all that the snapshot includes, less what expired.

        Positions are no measure: those of two readers of the same records differ by the ends of closed shards.
        """
        return all(map(self._has_all, self._snapshot.streams))

    def _has_all(self, followed: FollowedStream) -> bool:
        name = StreamName(followed.input.stream, self._stream.namespace)
        stream_id = followed.progress.stream_id or None
        reading = self._work.storage.record_reader.shards(name, stream_id)
        ends = {state.shard.index: state.next for state in self._work.call(reading)}
        positions = followed.progress.positions
        return all(ends.get(shard, offset) >= offset for shard, offset in positions.items())

    def _commit(self, batch: ViewBatch) -> None:
        committing = self._scans.commit_back_test(self._work.claim, self._test.spec, batch)
        progress = self._work.call(committing)
        self._revision = msgspec.structs.replace(self._revision, progress=progress)
