"""Where a group is and could be: resets, bookmarks, and how far it lags behind."""

import asyncio
from collections.abc import Mapping, Sequence

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    BookmarkNotFound,
    GroupFull,
    GroupNotFound,
    OffsetExpired,
    OffsetOutOfRange,
    ShardNotFound,
)
from storage.domain.groups.group import (
    Bookmark,
    Group,
    ResetSpec,
    ResetTo,
    ShardLag,
    ShardReset,
    StartAt,
    without_holes,
)
from storage.domain.names import GroupName, LogId
from storage.domain.streams.stream import LogRecord, ReadFrom, ShardState, Stream
from storage.groups.coordinator import Change, GroupCoordinator, resetting
from storage.groups.offsets import OffsetCommitter
from storage.postgres.repositories.group_mapping import GroupShard
from storage.postgres.repositories.groups import GroupRows
from storage.streams.engine import Streams
from storage.streams.seek import offset_since

Holes = Mapping[LogId, list[tuple[int, int]]]


class GroupPositions:
    """Looks at the logs of a group's stream. Its verbs raise GroupNotFound, StreamNotFound."""

    def __init__(
        self,
        rows: GroupRows,
        changes: GroupCoordinator,
        offsets: OffsetCommitter,
        streams: Streams,
        clock: Clock,
    ) -> None:
        self._rows = rows
        self._changes = changes
        self._offsets = offsets
        self._streams = streams
        self._clock = clock

    # Where it starts

    async def begin(self, stream: Stream, start: StartAt) -> list[tuple[int, int | None, bool]]:
        """(shard, committed offset, finished) of a new group: at the latest, nothing that is there is read."""
        if start is not StartAt.LATEST:
            return [(shard.index, None, False) for shard in stream.shards]
        states = await self._streams.shards(stream.name)
        return [(one.shard.index, one.next, not one.shard.is_open) for one in states]

    async def position(self, group: Group, shard: int, committed: int | None) -> int | None:
        """The next offset that the group reads of a shard; None for the oldest there is."""
        if committed is not None or group.spec.start_time_ms is None:
            return committed
        return await offset_since(self._streams, group.stream, shard, group.spec.start_time_ms)

    async def start(self, group: Group, shard: int, committed: int | None) -> int:
        """As `position`, and where the oldest record is."""
        found = await self.position(group, shard, committed)
        return await offset_since(self._streams, group.stream, shard, 0) if found is None else found

    # Reset

    async def reset(self, name: GroupName, spec: ResetSpec, *, dry_run: bool) -> list[ShardReset]:
        """Set committed offsets, also of a group that is at work: what its members have read counts no more.

        Gives what changes, or with `dry_run` would change. Raises BookmarkNotFound, OffsetOutOfRange,
        ShardNotFound, ValidationFailed.
        """
        spec.check()
        group, shards = await self._assignment(name)
        stream = await self._offsets.stream(group)
        states = _chosen(await self._streams.shards(stream.name), spec)
        after = await self._targets(group, spec, states)
        before = {shard: found.committed for shard, found in shards.items()}
        if not dry_run:
            step = resetting({shard: ended for shard, (_, ended) in after.items()})
            moves = {shard: offset for shard, (offset, _) in after.items()}
            changed = await self._changes.do(name, Change(step, offsets=moves))
            before = dict(changed.committed_before)
        holes = await self._rows.holes([state.shard.log_id for state in states])
        return [_told(state, before, after[state.shard.index][0], holes) for state in states]

    async def _targets(
        self, group: Group, spec: ResetSpec, states: Sequence[ShardState]
    ) -> dict[int, tuple[int, bool]]:
        """Of each shard the offset, and whether nothing is left to read there, ever."""
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
        found = await self._rows.bookmarks(group, spec.bookmark)
        if not found:
            raise BookmarkNotFound(f"There is no bookmark '{spec.bookmark}'.")
        return found[0].positions

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
                return await offset_since(self._streams, group.stream, state.shard.index, time_ms)
            case ResetTo.OFFSETS | ResetTo.BOOKMARK:
                # A shard that is younger than the bookmark had not been read then.
                return _within(state, saved.get(state.shard.index, state.start))

    async def _has_ended(self, group: Group, state: ShardState, offset: int) -> bool:
        if state.shard.is_open or offset < state.next:
            return False
        where = ReadFrom(offset=offset)
        return (await self._streams.read_shard(group.stream, state.shard.index, where)).ended

    # Bookmarks

    async def save(
        self, name: GroupName, bookmark: str, positions: Mapping[int, int] | None
    ) -> Bookmark:
        """Keep positions under a name: those given, or where the group is now.

        Raises GroupFull, OffsetOutOfRange, ShardNotFound, ValidationFailed.
        """
        group, shards = await self._assignment(name)
        states = {state.shard.index: state for state in await self._streams.shards(group.stream)}
        if positions is None:
            positions = await self._now(group, shards, states)
        for shard, offset in positions.items():
            _within(_known(states, shard), offset)
        saved = Bookmark(
            name=bookmark, positions=dict(positions), created_at_ms=self._clock.now_ms()
        )
        kept = {one.name for one in await self._rows.bookmarks(group)}
        if bookmark not in kept and len(kept) >= limits.BOOKMARKS_MAX:
            raise GroupFull(f"A group has at most {limits.BOOKMARKS_MAX} bookmarks.")
        if not await self._rows.put_bookmark(group, saved):
            raise GroupNotFound
        return saved

    async def _now(
        self, group: Group, shards: Mapping[int, GroupShard], states: Mapping[int, ShardState]
    ) -> dict[int, int]:
        found = {}
        for index, state in states.items():
            known = shards.get(index)
            at = await self.position(group, index, known.committed if known else None)
            found[index] = state.start if at is None else at
        return found

    async def bookmarks(self, name: GroupName) -> list[Bookmark]:
        """The group's bookmarks, by name."""
        return await self._rows.bookmarks(await self._offsets.find(name))

    async def forget(self, name: GroupName, bookmark: str) -> None:
        """Delete a bookmark. Raises BookmarkNotFound."""
        if not await self._rows.delete_bookmark(await self._offsets.find(name), bookmark):
            raise BookmarkNotFound(f"There is no bookmark '{bookmark}'.")

    # Lag

    async def lag(self, name: GroupName) -> list[ShardLag]:
        """How far the group is in each shard."""
        group, shards = await self._assignment(name)
        stream = await self._offsets.stream(group)
        holes = await self._rows.holes([shard.log_id for shard in stream.shards])
        states = await self._streams.shards(stream.name)
        return await asyncio.gather(
            *(
                self._lag(group, stream, state, shards.get(state.shard.index), holes)
                for state in states
            )
        )

    async def _lag(
        self,
        group: Group,
        stream: Stream,
        state: ShardState,
        found: GroupShard | None,
        holes: Holes,
    ) -> ShardLag:
        index, committed = state.shard.index, found.committed if found else None
        at = await self.position(group, index, committed)
        position = state.start if at is None else at
        empty = holes.get(state.shard.log_id, [])
        unread = await self._next_unread(group, index, max(position, state.start), state.next)
        now_ms = self._clock.now_ms()
        return ShardLag(
            shard=index,
            owner=found.lease.owner if found else None,
            generation=found.lease.generation if found else 0,
            committed=committed,
            position=position,
            start=state.start,
            tip=state.next,
            records=without_holes(max(position, state.start), state.next, empty),
            expired=without_holes(position, state.start, empty),
            lag_ms=max(0, now_ms - unread.arrival_ms) if unread else 0,
            loss_in_ms=_loss_in_ms(stream, unread, now_ms),
            finished=found.lease.finished if found else False,
            committed_at_ms=found.committed_at_ms if found else None,
        )

    async def _next_unread(
        self, group: Group, shard: int, position: int, tip: int
    ) -> LogRecord | None:
        """The next record, if there is one; what retention takes at this moment is none."""
        if position >= tip:
            return None
        where = ReadFrom(offset=position)
        try:
            read = await self._streams.read_shard(
                group.stream, shard, where, records_max=1, bytes_max=1
            )
        except (OffsetExpired, OffsetOutOfRange):
            return None
        return read.records[0] if read.records else None

    async def _assignment(self, name: GroupName) -> tuple[Group, dict[int, GroupShard]]:
        found = await self._rows.assignment(name)
        if found is None:
            raise GroupNotFound(f"There is no group '{name.name}'.")
        group, _, shards = found
        return group, shards


def _loss_in_ms(stream: Stream, unread: LogRecord | None, now_ms: int) -> int | None:
    if unread is None or stream.spec.retention_ms is None:
        return None
    return max(0, unread.arrival_ms + stream.spec.retention_ms - now_ms)


def _chosen(states: Sequence[ShardState], spec: ResetSpec) -> list[ShardState]:
    """The shards that a reset is about. Raises ShardNotFound."""
    named = spec.shards if spec.offsets is None else tuple(spec.offsets)
    if named is None:
        return list(states)
    known = {state.shard.index: state for state in states}
    return [_known(known, shard) for shard in sorted(set(named))]


def _known(states: Mapping[int, ShardState], shard: int) -> ShardState:
    if shard not in states:
        raise ShardNotFound(f"The stream has no shard {shard}.")
    return states[shard]


def _within(state: ShardState, offset: int) -> int:
    """The offset, which is not past the end. Raises OffsetOutOfRange."""
    if offset > state.next:
        raise OffsetOutOfRange(
            f"The next offset of shard {state.shard.index} is {state.next}.",
            shard=state.shard.index,
            next_offset=state.next,
        )
    return offset


def _told(
    state: ShardState, before: Mapping[int, int | None], after: int, holes: Holes
) -> ShardReset:
    expired = without_holes(after, state.start, holes.get(state.shard.log_id, []))
    return ShardReset(state.shard.index, before.get(state.shard.index), after, expired)
