"""One batch of a view: from what was read and computed to what is committed."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from spark_worker.views.executor import Computed, MergedRow, MergeInput, ShardStats, State
from storage.domain import limits
from storage.domain.streams.lineage import FULLY_READ
from storage.domain.streams.stream import StreamRead
from storage.domain.views.final_position import FinalPosition
from storage.domain.views.plan import KeyColumn
from storage.domain.views.progress import (
    RowChange,
    ViewBatch,
    ViewCounts,
    ViewProgress,
    ViewRevision,
)
from storage.domain.views.row_key import encode_key, key_values
from storage.domain.views.sources import SourceMode
from storage.domain.views.watermark import advance_marks, watermark_of


class ViewFailed(Exception):
    """The view cannot include the batch, now or later; the text is the reason."""


def has_news(read: StreamRead) -> bool:
    """Return whether a read advances its positions."""
    return any(shard.records or shard.gap or shard.ended for shard in read.shards)


def encoded_keys(states: Sequence[State], columns: Sequence[KeyColumn]) -> dict[bytes, State]:
    """Return states by their encoded keys."""
    return {encode_key(key_values(state.key), columns): state for state in states}


def batch_of(
    revision: ViewRevision,
    read: StreamRead,
    computed: Computed,
    *,
    idle: Collection[int],
    tables: Mapping[str, Mapping[int, int]],
    milliseconds: int,
) -> ViewBatch:
    """Return what a batch changes.

    `idle`: shards without records for longer than the input's `idle_ms`. `tables`: positions of its tables. Raises ViewFailed.
    """
    before, input_, stats = revision.progress, revision.query.input, computed.stats
    marks = advance_marks(before.marks, {shard: each.newest_ms for shard, each in stats.items()})
    ended = ended_shards(marks, read.positions)
    after = ViewProgress(
        positions=read.positions,
        tables={name: dict(positions) for name, positions in tables.items()},
        marks=marks,
        watermark_ms=watermark_of(
            marks,
            delay_ms=input_.watermark_ms,
            idle={*idle, *ended},
            before_ms=before.watermark_ms,
        ),
        batch=before.batch + 1,
        counts=before.counts + _counts(read, stats),
    )
    changes = tuple(_change(row, revision, computed.merged) for row in computed.rows)
    return ViewBatch(before=before, after=after, changes=changes, milliseconds=milliseconds)


def move_batch(revision: ViewRevision, positions: Mapping[int, int]) -> ViewBatch:
    """Return a batch without records, which sets positions, such as the first ones."""
    before = revision.progress
    after = replace(before, positions=dict(positions), batch=before.batch + 1)
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


def ended_shards(marks: Iterable[int], positions: Mapping[int, int]) -> set[int]:
    """Return the shards with marks that have been read to their end, or were left out."""
    return {shard for shard in marks if positions.get(shard, FULLY_READ) == FULLY_READ}


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
