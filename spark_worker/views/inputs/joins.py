"""Records of two streams that are joined: those that are buffered, and those of a batch.

    buffered + those of a batch ──▶ new ones of the first with all of the second, buffered ones of the first with new ones of the second
                                ──▶ of an outer join, those that cease to wait and have no match
                                ──▶ buffered: those that later records may match

A record is buffered while one that is not behind the watermark can match it; in an outer join, those of the other stream also while a
record that they may have matched waits. So the buffered records depend on the positions and the watermark alone: a worker that starts reads
them from the log again. A record behind the watermark is late: it is counted, and joined with those that are still buffered.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
from msgspec.structs import replace

from spark_worker.runtime.job_context import JobContext
from spark_worker.views.executor import JoinSide, ShardStats
from spark_worker.views.failure import ViewFailed
from spark_worker.views.inputs.backlog import BatchRecords
from spark_worker.views.inputs.join_records import (
    admitted,
    expired_records,
    least_times_ms,
    shard_stats,
    since,
    stream_watermark_ms,
)
from spark_worker.views.inputs.marks import watermark_after
from spark_worker.views.planning.records import raw_table
from storage.domain import limits
from storage.domain.errors import ShardNotFound
from storage.domain.names import StreamName
from storage.domain.replays.replay import OffsetRange
from storage.domain.streams.lineage import FULLY_READ
from storage.domain.streams.stream import Gap, GapReason, LogRecord, ShardRead
from storage.domain.views.progress import FollowedStream, ViewRevision
from storage.streams.record_source import RecordSource

Parse = Callable[[str, pa.Table], pa.Table]
"""Parses raw records of the stream with a name in the query."""


class JoinBatch(NamedTuple):
    """Records of a batch by their names in the query, and their counts in the same order.

    `gaps`: buffered records that retention has deleted before a worker read them again. `expired`: records of the stream that an outer
    join preserves which cease to wait with the batch; `expiry_ms`: the watermark at which the next one does, if one waits.
    """

    sides: Mapping[str, JoinSide]
    stats: Sequence[Mapping[int, ShardStats]]
    gaps: int
    expired: Mapping[str, pa.Table]
    expiry_ms: int | None


class _Buffer(NamedTuple):
    """Parsed records of each stream that may match later ones, at the positions of a revision."""

    positions: Sequence[Mapping[int, int]]
    tables: Sequence[pa.Table]
    gaps: int = 0


class JoinBuffers:
    """Records of joined streams that wait in the memory of a worker, by revision."""

    def __init__(self, work: JobContext) -> None:
        self._work = work
        self._buffers: dict[str, _Buffer] = {}

    def keep(self, revision_ids: Collection[str]) -> None:
        """Forget the records of all other revisions."""
        for revision_id in self._buffers.keys() - {*revision_ids}:
            del self._buffers[revision_id]

    def batch(self, parse: Parse, revision: ViewRevision, records: BatchRecords) -> JoinBatch:
        """Return the records of a batch with the buffered ones, and buffer both for the next one.

        Raises ViewFailed for more than a worker buffers.
        """
        buffer = self._buffers.pop(revision.revision_id, None)
        if buffer is None or buffer.positions != _positions(revision):
            buffer = self._read_again(parse, revision)
        late_ms = stream_watermark_ms(revision.plan, revision.progress.watermark_ms)
        sides, stats = dict[str, JoinSide](), list[dict[int, ShardStats]]()
        for followed, table, read in zip(
            revision.streams, buffer.tables, records.reads, strict=True
        ):
            least_ms = _least_ms(revision, followed)
            raw = raw_table({shard.shard: shard.records for shard in read.shards}, None)
            parsed = parse(followed.relation, raw)
            stats.append(shard_stats(parsed, late_ms))
            side = JoinSide.of(since(table, least_ms), admitted(parsed, followed, least_ms))
            _check_size(followed, side.all_records)
            sides[followed.relation] = side
        positions = [read.positions for read in records.reads]
        tables = [side.all_records for side in sides.values()]
        self._buffers[revision.revision_id] = _Buffer(positions, tables)
        expired, expiry_ms = dict[str, pa.Table](), None
        if name := revision.plan.join_preserved:
            after_ms = watermark_after(revision, records, stats)
            split = expired_records(revision.plan, after_ms, sides[name].all_records)
            expired[name], expiry_ms = split
        return JoinBatch(sides, stats, buffer.gaps, expired, expiry_ms)

    def _read_again(self, parse: Parse, revision: ViewRevision) -> _Buffer:
        """Read the buffered records of a revision from its streams."""
        tables, gaps = list[pa.Table](), 0
        for followed in revision.streams:
            table = parse(followed.relation, raw_table({}, None))
            for shard, records, gap in self._buffered_reads(followed):
                parsed = parse(followed.relation, raw_table({shard: records}, None))
                parsed = admitted(parsed, followed, _least_ms(revision, followed))
                table = pa.concat_tables([table, parsed])
                _check_size(followed, table)
                gaps += gap
            tables.append(table)
        return _Buffer(_positions(revision), tables, gaps)

    def _buffered_reads(
        self, followed: FollowedStream
    ) -> Iterator[tuple[int, Sequence[LogRecord], int]]:
        """Yield records among which are the buffered ones: a shard, its records, and a gap."""
        for within in self._work.call(self._ranges(followed)):
            offset = within.first
            while offset < within.end:
                self._work.check()
                read = self._work.call(self._read(followed, within, offset))
                records = [each for each in read.records if each.offset < within.end]
                yield within.shard, records, _gap(read, replace(within, first=offset))
                offset = max(read.next_offset, offset + 1)

    async def _ranges(self, followed: FollowedStream) -> list[OffsetRange]:
        """Return the offsets among which are the buffered ones of a stream."""
        progress = followed.progress
        if not progress.buffered_from:
            return []
        reader, name = self._work.storage.record_reader, self._name(followed)
        states = await reader.shards(name, progress.stream_id)
        ends = {state.shard.index: state.next for state in states}
        ranges = []
        for shard, first in sorted(progress.buffered_from.items()):
            end = progress.positions.get(shard, FULLY_READ)
            end = ends.get(shard, first + 1) if end == FULLY_READ else end
            ranges.append(OffsetRange(shard, first, end))
        return ranges

    async def _read(self, followed: FollowedStream, within: OffsetRange, offset: int) -> ShardRead:
        """Read the next records of a range; a gap up to its end if its shard is gone."""
        reader, stream_id = self._work.storage.record_reader, followed.progress.stream_id
        source = RecordSource(reader, self._name(followed), stream_id)
        most = min(limits.READ_RECORDS_MAX, within.end - offset)
        try:
            return await source.read(within.shard, offset, records_max=most)
        except ShardNotFound:
            gap = Gap(offset, within.end, GapReason.EXPIRED)
            return ShardRead(within.shard, (), within.end, within.end, within.end, 0, gap)

    def _name(self, followed: FollowedStream) -> StreamName:
        return StreamName(followed.input.stream, self._work.job.namespace)


def _positions(revision: ViewRevision) -> list[Mapping[int, int]]:
    return [followed.progress.positions for followed in revision.streams]


def _least_ms(revision: ViewRevision, followed: FollowedStream) -> int | None:
    return least_times_ms(revision.plan, revision.progress.watermark_ms)[followed.relation]


def _gap(read: ShardRead, within: OffsetRange) -> int:
    """Return how many offsets of a range a read reports as a gap."""
    if read.gap is None:
        return 0
    return max(0, min(read.gap.next, within.end) - max(read.gap.first, within.first))


def _check_size(followed: FollowedStream, records: pa.Table) -> None:
    """Raise ViewFailed for more records than a worker buffers."""
    most, bytes_max = limits.VIEW_JOIN_RECORDS_MAX, limits.VIEW_JOIN_BYTES_MAX
    if records.num_rows > most or records.nbytes > bytes_max:
        raise ViewFailed(
            f"{records.num_rows} records of {followed.input.stream!r} with {records.nbytes} bytes wait in the join, more than {most} or "
            f"{bytes_max}: use closer bounds of the event times, or a smaller `watermark_seconds`."
        )
