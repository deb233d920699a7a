"""One batch of a view: from what was read and computed to what is committed."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from spark_worker.views.executor import Computed, MergedRow, MergeInput, ShardStats, State
from spark_worker.views.failure import ViewFailed
from spark_worker.views.inputs.backlog import BatchRecords
from spark_worker.views.inputs.join_records import first_offsets, least_times_ms
from spark_worker.views.inputs.marks import marks_after, watermark_after
from storage.domain import limits
from storage.domain.streams.stream import StreamRead
from storage.domain.views.final_position import FinalPosition
from storage.domain.views.plan import KeyColumn
from storage.domain.views.progress import (
    RowChange,
    StreamProgress,
    ViewBatch,
    ViewCounts,
    ViewProgress,
    ViewRevision,
)
from storage.domain.views.row_key import encode_key, key_values
from storage.domain.views.sources import SourceMode


def encoded_keys(states: Sequence[State], columns: Sequence[KeyColumn]) -> dict[bytes, State]:
    """Return states by their encoded keys."""
    return {encode_key(key_values(state.key), columns): state for state in states}


def batch_of(
    revision: ViewRevision,
    records: BatchRecords,
    computed: Computed,
    *,
    tables: Mapping[str, Mapping[int, int]],
    milliseconds: int,
) -> ViewBatch:
    """Return what a batch changes; `tables`: positions of its tables. Raises ViewFailed."""
    before, streams = revision.progress, list[StreamProgress]()
    counts = before.counts + ViewCounts(gaps=computed.gaps)
    for followed, read, stats in zip(revision.streams, records.reads, computed.stats, strict=True):
        counts += _counts(read, stats)
        marks = marks_after(followed, stats)
        streams.append(
            StreamProgress(positions=read.positions, marks=marks, stream_id=read.stream_id)
        )
    after = ViewProgress(
        tables={name: dict(positions) for name, positions in tables.items()},
        watermark_ms=watermark_after(revision, records, computed.stats),
        batch=before.batch + 1,
        counts=counts,
    )
    if computed.joined:
        least = least_times_ms(revision.plan, after.watermark_ms)
        streams = [
            replace(
                stream, buffered_from=first_offsets(computed.joined[name].all_records, least[name])
            )
            for (name, _, _), stream in zip(revision.streams, streams, strict=True)
        ]
    after = after.with_streams(revision.query, streams)
    changes = tuple(_change(row, revision, computed.merged) for row in computed.rows)
    return ViewBatch(before=before, after=after, changes=changes, milliseconds=milliseconds)


def move_batch(revision: ViewRevision, positions: Sequence[Mapping[int, int]]) -> ViewBatch:
    """Return a batch without records, which sets positions, such as the first ones."""
    before = revision.progress
    streams = [
        replace(followed.progress, positions=dict(at))
        for followed, at in zip(revision.streams, positions, strict=True)
    ]
    after = replace(before, batch=before.batch + 1).with_streams(revision.query, streams)
    return ViewBatch(before=before, after=after)


def tick_batch(revision: ViewRevision, watermark_ms: int) -> ViewBatch:
    """Return a batch without records, which advances the watermark."""
    before = revision.progress
    after = replace(before, watermark_ms=watermark_ms, batch=before.batch + 1)
    return ViewBatch(before=before, after=after)


def is_final(progress: ViewProgress) -> bool:
    """Return whether the rows of all windows that have ended are final."""
    if progress.watermark_ms is None:
        return True
    reached = FinalPosition(progress.watermark_ms)
    return progress.final is not None and progress.final.bound >= reached.bound


def _counts(read: StreamRead, stats: Mapping[int, ShardStats]) -> ViewCounts:
    return ViewCounts(
        records=sum(each.records for each in stats.values()),
        late=sum(each.late for each in stats.values()),
        bad=sum(each.bad for each in stats.values()),
        gaps=sum(shard.gap.next - shard.gap.first for shard in read.shards if shard.gap),
    )


def _change(row: MergedRow, revision: ViewRevision, merged: MergeInput) -> RowChange:
    size = len((row.row or "").encode()) + len(row.state.encode())
    if size > limits.VIEW_ROW_BYTES_MAX:
        raise ViewFailed(
            f"A row and its state have {size} bytes, more than {limits.VIEW_ROW_BYTES_MAX}."
        )
    key = merged.keys[row.key]
    tracks = revision.query.sources is SourceMode.RANGE
    return RowChange(
        key=key,
        row=row.row,
        state=row.state,
        window_end_ms=row.window_end_ms,
        sources=merged.sources.get(key, {}) if tracks else None,
        replaces=merged.replaced.get(key, ()),
    )
