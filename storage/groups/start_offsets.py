"""Start offsets: where a group begins to read each shard, decided once.

before the first read   the start policy decides: the oldest record, the end, or a time
at the first read       the starts of all shards are stored, so that what expires afterwards is a gap
a shard added later     begins at its first record: its parents were the group's already
"""

import asyncio
from collections.abc import Mapping, Sequence

import attrs
from msgspec.structs import replace

from storage.domain.groups.group import (
    Group,
    MemberShard,
    Membership,
    start_offset,
)
from storage.domain.streams.start_at import StartAt
from storage.domain.streams.stream import ShardState, Stream
from storage.groups.offsets import OffsetCommitter
from storage.postgres.repositories.group_mapping import GroupShard
from storage.postgres.repositories.groups import GroupRows
from storage.streams.read import RecordReader
from storage.streams.seek import offset_since


@attrs.define(eq=False, slots=False)
class StartOffsets:
    """Offsets at which groups begin to read the shards of their streams.

    Every verb raises GroupNotFound, StreamNotFound.
    """

    _rows: GroupRows
    _offsets: OffsetCommitter
    _reader: RecordReader

    async def initial_offsets(
        self, stream: Stream, start: StartAt
    ) -> list[tuple[int, int | None, bool]]:
        """Return (shard, committed offset, finished) for each shard of a new group.

        With LATEST, no existing record is read.
        """
        if start is not StartAt.LATEST:
            return [(shard.index, None, False) for shard in stream.shards]
        states = await self._reader.shards(stream.name, stream.stream_id)
        return [(one.shard.index, one.next, not one.shard.is_open) for one in states]

    async def positions(
        self, group: Group, shards: Mapping[int, GroupShard], states: Sequence[ShardState]
    ) -> dict[int, int]:
        """Return the next offset that the group reads of each shard in `states`.

        `shards`: the group's, of which some may not have been read yet.
        """
        has_started = any(shard.position is not None for shard in shards.values())
        return dict(
            await asyncio.gather(
                *(
                    self._position(group, state, shards.get(state.shard.index), has_started)
                    for state in states
                )
            )
        )

    async def _position(
        self, group: Group, state: ShardState, group_shard: GroupShard | None, has_started: bool
    ) -> tuple[int, int]:
        index = state.shard.index
        if group_shard is not None and group_shard.position is not None:
            return index, group_shard.position
        time_ms = group.spec.start_time_ms
        oldest = (
            state.start
            if time_ms is None
            else await offset_since(self._reader, group.stream, index, time_ms, group.stream_id)
        )
        return index, start_offset(state.shard, oldest, has_started=has_started)

    async def stored(self, membership: Membership) -> Membership:
        """Return the membership with the start of every shard, stored if this is the first read."""
        places = (*membership.assigned, *membership.revoked)
        if all(place.position is not None for place in places):
            return membership
        starts = await self._store(membership.group)
        return replace(
            membership,
            assigned=_with_starts(membership.assigned, starts),
            revoked=_with_starts(membership.revoked, starts),
        )

    async def _store(self, group: Group) -> Mapping[int, int]:
        _, _, shards = await self._offsets.describe(group.name)
        stream = await self._offsets.stream(group)
        states = await self._reader.shards(stream.name, stream.stream_id)
        starts = await self.positions(group, shards, states)
        return starts | await self._rows.store_starts(group, starts)

    async def position(self, group: Group, place: MemberShard) -> int:
        """Return the next offset that the group reads of a shard."""
        if place.position is not None:
            return place.position
        return (await self._store(group))[place.shard]


def _with_starts(
    places: Sequence[MemberShard], starts: Mapping[int, int]
) -> tuple[MemberShard, ...]:
    return tuple(
        replace(place, start=starts.get(place.shard)) if place.position is None else place
        for place in places
    )
