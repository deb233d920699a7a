"""Marks of a revision's streams after a batch, and the watermark that follows from them."""

from collections.abc import Mapping, Sequence

from spark_worker.views.executor import ShardStats
from spark_worker.views.inputs.backlog import BatchRecords
from storage.domain.views.progress import FollowedStream, ViewRevision
from storage.domain.views.watermark import StreamMarks, advance_marks, ended_shards, watermark_of


def marks_after(followed: FollowedStream, stats: Mapping[int, ShardStats]) -> dict[int, int]:
    """Return the greatest event time of each shard of a stream after a batch."""
    newest = {shard: each.newest_ms for shard, each in stats.items()}
    return advance_marks(followed.progress.marks, newest)


def watermark_after(
    revision: ViewRevision, records: BatchRecords, stats: Sequence[Mapping[int, ShardStats]]
) -> int | None:
    """Return the watermark of a revision's rows after a batch; `stats` of each stream."""
    marked = list[StreamMarks]()
    for followed, read, of_stream in zip(revision.streams, records.reads, stats, strict=True):
        marks = marks_after(followed, of_stream)
        delay_ms = followed.input.watermark_ms + revision.plan.join_delay_ms
        idle = records.idle.get(revision.revision_id, {}).get(followed.relation, ())
        ended = ended_shards(marks, read.positions)
        marked.append(StreamMarks(marks, delay_ms, {*idle, *ended}))
    least_ms = max(
        (one for one in (revision.progress.watermark_ms, records.watermark_ms) if one is not None),
        default=None,
    )
    return watermark_of(marked, least_ms)


def watermark_beside(revision: ViewRevision, other: ViewRevision) -> int | None:
    """Return the watermark of a revision whose streams have that of another revision's.

    None if they read different streams, or these otherwise, whatever their queries call them.
    """
    ours, theirs = ([followed.input for followed in one.streams] for one in (revision, other))
    if ours != theirs or other.progress.watermark_ms is None:
        return None
    return other.progress.watermark_ms + other.plan.join_delay_ms - revision.plan.join_delay_ms
