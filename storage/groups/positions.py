"""Group positions: resets and bookmarks."""

import asyncio
from collections.abc import Mapping, Sequence

import attrs

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    BookmarkNotFound,
    GroupFull,
    GroupNotFound,
    OffsetOutOfRange,
    ShardNotFound,
    StaleGeneration,
)
from storage.domain.groups.group import (
    Bookmark,
    Group,
    ResetSpec,
    ResetTo,
    ShardReset,
    group_not_found,
    start_offset,
    without_back,
    without_holes,
)
from storage.domain.names import GroupName, LogId
from storage.domain.streams.stream import ReadFrom, ShardState
from storage.groups.coordinator import GroupCoordinator, MembershipChange, advancing, resetting
from storage.groups.offsets import OffsetCommitter
from storage.groups.start_offsets import StartOffsets
from storage.postgres.repositories.groups import GroupRows
from storage.streams.read import RecordReader
from storage.streams.seek import offset_since

Holes = Mapping[LogId, list[tuple[int, int]]]


@attrs.define(eq=False, slots=False, kw_only=True)
class GroupPositions:
    """Resets of committed offsets, and bookmarks.

    Every verb raises GroupNotFound, StreamNotFound.
    """

    _rows: GroupRows
    _coordinator: GroupCoordinator
    _offsets: OffsetCommitter
    _starts: StartOffsets
    _reader: RecordReader
    _clock: Clock

    async def reset(
        self, name: GroupName, spec: ResetSpec, *, dry_run: bool = False
    ) -> list[ShardReset]:
        """Set committed offsets, also with active members, whose uncommitted reads are discarded.

        Returns what changes, or with `dry_run` would change. Raises BookmarkNotFound, OffsetOutOfRange,
        ShardNotFound, ValidationFailed.
        """
        spec.check()
        group, _, shards = await self._offsets.describe(name)
        stream = await self._offsets.stream(group)
        states = _chosen(await self._reader.shards(stream.name, stream.stream_id), spec)
        after = await self._targets(group, spec, states)
        before = {shard: found.committed for shard, found in shards.items()}
        if not dry_run:
            step = resetting({shard: ended for shard, (_, ended) in after.items()})
            moves = {shard: offset for shard, (offset, _) in after.items()}
            changed = await self._coordinator.apply(name, MembershipChange(step, offsets=moves))
            before = dict(changed.committed_before)
        holes = await self._rows.holes([state.shard.log_id for state in states])
        return [
            _reset_result(state, before, after[state.shard.index][0], holes) for state in states
        ]

    async def advance(self, group: Group, offsets: Mapping[int, int]) -> bool:
        """Set committed offsets of a group without members, and never back.

        Returns False, and changes nothing, if it has members. Raises GroupNotFound for another group of its name,
        OffsetOutOfRange, ShardNotFound.
        """
        current, members, shards = await self._offsets.describe(group.name)
        if current.group_id != group.group_id:
            raise group_not_found(group.name)
        committed = {shard: found.committed for shard, found in shards.items()}
        moves = without_back(offsets, committed)
        if members or not moves:
            return not members
        spec = ResetSpec(to=ResetTo.OFFSETS, offsets=moves)
        stream = await self._offsets.stream(group)
        states = _chosen(await self._reader.shards(stream.name, stream.stream_id), spec)
        targets = await self._targets(group, spec, states)
        step = advancing({shard: ended for shard, (_, ended) in targets.items()})
        change = MembershipChange(step, offsets=moves, never_back=True)
        try:
            await self._coordinator.apply(group.name, change)
        except StaleGeneration:
            return False
        return True

    async def _targets(
        self, group: Group, spec: ResetSpec, states: Sequence[ShardState]
    ) -> dict[int, tuple[int, bool]]:
        """Return the offset of each shard, and whether nothing can be left to read in it."""
        saved = await self._saved(group, spec)
        offsets = await asyncio.gather(
            *(self._target(group, spec, state, saved) for state in states)
        )
        ended = await asyncio.gather(
            *(
                self._has_ended(group, state, offset)
                for state, offset in zip(states, offsets, strict=True)
            )
        )
        indexes = [state.shard.index for state in states]
        return dict(zip(indexes, zip(offsets, ended, strict=True), strict=True))

    async def _saved(self, group: Group, spec: ResetSpec) -> Mapping[int, int]:
        if spec.bookmark is None:
            return spec.offsets or {}
        bookmarks = await self._rows.bookmarks(group, spec.bookmark)
        if not bookmarks:
            raise BookmarkNotFound(f"Bookmark '{spec.bookmark}' does not exist.")
        return bookmarks[0].positions

    async def _target(
        self, group: Group, spec: ResetSpec, state: ShardState, saved: Mapping[int, int]
    ) -> int:
        match spec.to:
            case ResetTo.EARLIEST:
                return state.start
            case ResetTo.LATEST:
                return state.next
            case ResetTo.TIME:
                time_ms = spec.time_ms or 0
                return await offset_since(
                    self._reader, group.stream, state.shard.index, time_ms, group.stream_id
                )
            case ResetTo.OFFSETS | ResetTo.BOOKMARK:
                # A child that is younger than the bookmark had not been read then, nor had its parents.
                oldest = start_offset(state.shard, state.start, has_started=True)
                return _within(state, saved.get(state.shard.index, oldest))

    async def _has_ended(self, group: Group, state: ShardState, offset: int) -> bool:
        if state.shard.is_open or offset < state.next:
            return False
        where = ReadFrom(offset=offset)
        read = await self._reader.read_shard(
            group.stream, state.shard.index, where, stream_id=group.stream_id
        )
        return read.ended

    # Bookmarks

    async def save_bookmark(
        self,
        name: GroupName,
        bookmark: str,
        positions: Mapping[int, int] | None = None,
        *,
        create_only: bool = False,
    ) -> Bookmark:
        """Save positions under a name: those given, or the group's current ones.

        Raises GroupFull, OffsetOutOfRange, ShardNotFound, ValidationFailed, PreconditionFailed.
        """
        group, _, shards = await self._offsets.describe(name)
        states = {
            state.shard.index: state
            for state in await self._reader.shards(group.stream, group.stream_id)
        }
        if positions is None:
            positions = await self._starts.positions(group, shards, list(states.values()))
        for shard, offset in positions.items():
            _within(_existing(states, shard), offset)
        saved = Bookmark(
            name=bookmark, positions=dict(positions), created_at_ms=self._clock.now_ms()
        )
        names = {one.name for one in await self._rows.bookmarks(group)}
        if bookmark not in names and len(names) >= limits.BOOKMARKS_MAX:
            raise GroupFull(f"A group can have at most {limits.BOOKMARKS_MAX} bookmarks.")
        if not await self._rows.put_bookmark(group, saved, create_only=create_only):
            raise GroupNotFound
        return saved

    async def bookmarks(self, name: GroupName) -> list[Bookmark]:
        """Return the group's bookmarks, by name."""
        return await self._rows.bookmarks(await self._offsets.find(name))

    async def delete_bookmark(self, name: GroupName, bookmark: str) -> None:
        """Delete a bookmark.

        Raises BookmarkNotFound.
        """
        if not await self._rows.delete_bookmark(await self._offsets.find(name), bookmark):
            raise BookmarkNotFound(f"Bookmark '{bookmark}' does not exist.")


def _chosen(states: Sequence[ShardState], spec: ResetSpec) -> list[ShardState]:
    """Return the shards that a reset applies to.

    Raises ShardNotFound.
    """
    named = spec.shards if spec.offsets is None else tuple(spec.offsets)
    if named is None:
        return list(states)
    by_index = {state.shard.index: state for state in states}
    return [_existing(by_index, shard) for shard in sorted(set(named))]


def _existing(states: Mapping[int, ShardState], shard: int) -> ShardState:
    if shard not in states:
        raise ShardNotFound(f"The stream has no shard {shard}.")
    return states[shard]


def _within(state: ShardState, offset: int) -> int:
    """Return the offset if it is not past the end.

    Raises OffsetOutOfRange.
    """
    if offset > state.next:
        raise OffsetOutOfRange(
            f"The next offset of shard {state.shard.index} is {state.next}.",
            shard=state.shard.index,
            next_offset=state.next,
        )
    return offset


def _reset_result(
    state: ShardState, before: Mapping[int, int | None], after: int, holes: Holes
) -> ShardReset:
    expired = without_holes(after, state.start, holes.get(state.shard.log_id, []))
    return ShardReset(state.shard.index, before.get(state.shard.index), after, expired)
