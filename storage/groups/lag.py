"""Group lag: unread records of each shard, and the time until retention deletes them."""

import asyncio

import attrs

from storage.domain.clock import Clock
from storage.domain.errors import (
    OffsetExpired,
    OffsetOutOfRange,
)
from storage.domain.groups.group import (
    Group,
    ShardLag,
    without_holes,
)
from storage.domain.names import GroupName
from storage.domain.streams.stream import LogRecord, ReadFrom, ShardState, Stream
from storage.groups.offsets import OffsetCommitter
from storage.groups.start_offsets import StartOffsets
from storage.postgres.repositories.group_mapping import GroupShard
from storage.postgres.repositories.groups import GroupRows
from storage.streams.read import RecordReader


@attrs.define(eq=False, slots=False)
class LagReader:
    """Lag of groups.

    Every verb raises GroupNotFound, StreamNotFound.
    """

    _rows: GroupRows
    _offsets: OffsetCommitter
    _starts: StartOffsets
    _reader: RecordReader
    _clock: Clock

    async def by_shard(self, name: GroupName) -> list[ShardLag]:
        """Return the group's lag by shard. Raises GroupNotFound."""
        group, _, shards = await self._offsets.describe(name)
        stream = await self._offsets.stream(group)
        holes = await self._rows.holes([shard.log_id for shard in stream.shards])
        states = await self._reader.shards(stream.name, stream.stream_id)
        positions = await self._starts.positions(group, shards, states)
        return await asyncio.gather(
            *(
                self._lag(
                    group,
                    stream,
                    state,
                    shards.get(state.shard.index),
                    position=positions[state.shard.index],
                    holes=holes.get(state.shard.log_id, []),
                )
                for state in states
            )
        )

    async def _lag(
        self,
        group: Group,
        stream: Stream,
        state: ShardState,
        group_shard: GroupShard | None,
        *,
        position: int,
        holes: list[tuple[int, int]],
    ) -> ShardLag:
        index = state.shard.index
        unread = await self._next_unread(group, index, max(position, state.start), state.next)
        now_ms = self._clock.now_ms()
        return ShardLag(
            shard=index,
            owner=group_shard.lease.owner if group_shard else None,
            generation=group_shard.lease.generation if group_shard else 0,
            committed=group_shard.committed if group_shard else None,
            position=position,
            start=state.start,
            tip=state.next,
            records=without_holes(max(position, state.start), state.next, holes),
            expired=without_holes(position, state.start, holes),
            lag_ms=max(0, now_ms - unread.arrival_ms) if unread else 0,
            loss_in_ms=_loss_in_ms(stream, unread, now_ms),
            finished=group_shard.lease.finished if group_shard else False,
            committed_at_ms=group_shard.committed_at_ms if group_shard else None,
        )

    async def _next_unread(
        self, group: Group, shard: int, position: int, tip: int
    ) -> LogRecord | None:
        """Return the next record, if there is one; None if retention deletes it at this moment."""
        if position >= tip:
            return None
        where = ReadFrom(offset=position)
        try:
            read = await self._reader.read_one(group.stream, shard, where, group.stream_id)
        except (OffsetExpired, OffsetOutOfRange):
            return None
        return read.records[0] if read.records else None


def _loss_in_ms(stream: Stream, unread: LogRecord | None, now_ms: int) -> int | None:
    if unread is None or stream.spec.retention_ms is None:
        return None
    return max(0, unread.arrival_ms + stream.spec.retention_ms - now_ms)
