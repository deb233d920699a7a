"""Search job: finds the records that contributed to a row, by the query of its revision.

ranges of offsets ──▶ some thousand records ──▶ one Spark job: the key that each contributes to ──▶ those of the row
"""

from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple

import msgspec

from spark_worker.runtime.job_context import JobContext, PermanentFailure
from spark_worker.views.processor import BatchProcessor
from spark_worker.views.session import ViewSession
from spark_worker.views.sessions import is_in_session
from storage.concurrency.bounded_cache import BoundedCache
from storage.domain import limits
from storage.domain.errors import ShardNotFound, StreamNotFound, StreamRecreated
from storage.domain.names import StreamName
from storage.domain.replays.replay import OffsetRange
from storage.domain.streams.stream import Gap, GapReason, LogRecord
from storage.domain.views.plan import ViewPlan
from storage.domain.views.row_key import encode_key, key_values
from storage.domain.views.source_search import RecordLocation, SearchResult, SearchSpec
from storage.streams.record_source import RecordSource

_SESSIONS_MAX = 8
_lock = Lock()  # jobs have threads of their own
_sessions = BoundedCache[str, ViewSession](_SESSIONS_MAX)
"""Sessions with the plans of revisions that were searched before; a search takes one for itself."""


class _RecordBatch(NamedTuple):
    """Records of a shard that are searched at once; `next`: the offset behind them."""

    shard: int
    records: Sequence[LogRecord]
    next: int


def search(work: JobContext) -> Mapping[str, Any]:
    """Find the records of a row; return their locations."""
    spec = work.spec(SearchSpec)
    work.require_spark()
    revision_id = spec.revision.revision_id
    with _lock:
        session = _sessions.pop(revision_id, None)
    processor = BatchProcessor(work, session)
    result = _SourceSearch(work, spec, processor).run()
    if (session := processor.session) is not None:
        session.keep([revision_id], set())  # its tables are those of this search
        with _lock:
            _sessions[revision_id] = session
    return {"result": msgspec.to_builtins(result)}


class _SourceSearch:
    """Search for the records of one row."""

    def __init__(self, work: JobContext, spec: SearchSpec, processor: BatchProcessor) -> None:
        self._work = work
        self._spec = spec
        self._processor = processor
        stream = StreamName(spec.revision.query.input.stream, work.job.namespace)
        reader = work.storage.record_reader
        self._source = RecordSource(reader, stream, spec.revision.stream_id)
        self._gaps: list[tuple[int, Gap]] = []

    def run(self) -> SearchResult:
        """Search until the limit of the result, or that of the records."""
        spec, matches, searched = self._spec, list[RecordLocation](), 0
        if reason := self._processor.prepare([spec.revision]).get(spec.revision.revision_id):
            raise PermanentFailure(reason)
        for batch in self._record_batches():
            self._work.check()
            matches += self._matches(batch)
            searched += len(batch.records)
            if len(matches) > spec.limit:
                return SearchResult(matches[: spec.limit], self._gaps, matches[spec.limit])
            if searched >= limits.VIEW_SOURCES_SEARCHED_MAX:
                return SearchResult(matches, self._gaps, RecordLocation(batch.shard, batch.next))
        return SearchResult(matches, self._gaps)

    def _matches(self, batch: _RecordBatch) -> list[RecordLocation]:
        revision, key = self._spec.revision, self._spec.key
        contributors = self._processor.contributors(revision, {batch.shard: batch.records})
        return sorted(
            RecordLocation(each.shard, each.offset)
            for each in contributors
            if _is_of_row(each.key, key, revision.plan)
        )

    def _record_batches(self) -> Iterator[_RecordBatch]:
        for within in self._spec.ranges:
            offset = within.first
            while offset < within.end:
                batch = self._work.call(self._read(OffsetRange(within.shard, offset, within.end)))
                yield batch
                offset = batch.next

    async def _read(self, within: OffsetRange) -> _RecordBatch:
        """Read the next batch of a range."""
        records, size_bytes, offset = list[LogRecord](), 0, within.first
        try:
            async for read in self._source.reads(within):
                gap, offset = read.gap, read.next_offset
                if gap is not None:
                    self._gaps.append((within.shard, _within(gap, within)))
                records += [one for one in read.records if one.offset < within.end]
                size_bytes += sum(len(one.record.data) for one in read.records)
                if (
                    len(records) >= limits.VIEW_SOURCES_BATCH
                    or size_bytes >= limits.VIEW_SOURCES_BYTES_MAX
                ):
                    return _RecordBatch(within.shard, records, offset)
        except (ShardNotFound, StreamNotFound, StreamRecreated):
            self._gaps.append((within.shard, Gap(offset, within.end, GapReason.EXPIRED)))
        return _RecordBatch(within.shard, records, within.end)


def _is_of_row(key: str, row_key: bytes, plan: ViewPlan) -> bool:
    """Return whether a record, whose key is JSON, contributes to the row with a key."""
    if plan.session_gap_ms is not None:
        return is_in_session(key, row_key, plan.key)
    return encode_key(key_values(key), plan.key) == row_key


def _within(gap: Gap, within: OffsetRange) -> Gap:
    return Gap(max(gap.first, within.first), min(gap.next, within.end), gap.reason)
