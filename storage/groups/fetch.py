"""Fetch for group members: one call that joins, sends a heartbeat, reads and waits."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import attrs

from storage.domain import limits
from storage.domain.errors import OffsetOutOfRange, ValidationFailed
from storage.domain.groups.assignment import Link, MemberId, eligible
from storage.domain.groups.group import (
    Commit,
    Fetched,
    Group,
    GroupKind,
    GroupOffset,
    MemberShard,
    Membership,
)
from storage.domain.names import GroupName
from storage.domain.streams.record_filter import Filter
from storage.domain.streams.stream import Gap, GapReason, ShardRead
from storage.groups.assignment_cache import AssignmentCache
from storage.groups.membership import GroupMembership
from storage.groups.offsets import OffsetCommitter
from storage.groups.read_selection import FetchSize, ReadPositions, select_reads
from storage.groups.start_offsets import StartOffsets
from storage.postgres.repositories.group_mapping import GroupShard, member_shard
from storage.postgres.repositories.groups import GroupRows
from storage.streams.read import RecordReader

_ALL = Filter()


def _always() -> bool:
    return True


@attrs.define(eq=False, slots=False)
class GroupFetcher:
    """Reads of a group's members, from its committed offsets."""

    _rows: GroupRows
    _members: GroupMembership
    _offsets: OffsetCommitter
    _starts: StartOffsets
    _reader: RecordReader
    _assignments: AssignmentCache

    async def fetch(
        self,
        name: GroupName,
        member_id: MemberId = "",
        *,
        positions: Mapping[int, int] | None = None,
        generation: int = 0,
        new_instance: bool = False,
        records_max: int = limits.READ_RECORDS_MAX,
        bytes_max: int = limits.READ_BYTES_MAX,
        wait_ms: int = 0,
        record_filter: Filter = _ALL,
        is_there: Callable[[], bool] = _always,
    ) -> Fetched:
        """Read the member's shards from the group's position; at their ends wait up to `wait_ms`.

        Joins if necessary, counts as a heartbeat, and gives up the shards that are to be given up: a member that asks for
        more holds on to nothing else. Repeated, it returns the same records until they are committed. `generation` is
        the one that this instance of the member had last; `positions` of it are read on from, for as long as the
        shards stay the member's. A `new_instance` fences the previous one. `is_there` returns whether the
        caller still waits. A simple group has no members, and all shards are read. In an outage of Postgres, the member's last
        assignment is read. Records that `record_filter` does not select are passed over: a read from the group's position
        that selects none commits its end, and the next one follows, for GROUP_FILTER_MS or until the wait is over. Raises
        MatchInvalid, and StaleGeneration when a later instance of the member has joined.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_ms / limits.SECOND_MS
        passes_until = loop.time() + limits.GROUP_FILTER_MS / limits.SECOND_MS
        ended: dict[int, ShardRead] = {}
        instance = generation or None
        progress = ReadPositions(positions or {}, generation)
        size = FetchSize(records_max, bytes_max, record_filter)
        while True:
            membership = await self._membership(name, member_id, instance, new_instance)
            new_instance, instance = False, membership.generation
            unfinished = [
                member_shard
                for member_shard in membership.assigned
                if member_shard.shard not in ended and not membership.group.spec.paused
            ]
            ahead = progress.of_leases(unfinished)
            starts = await self._positions(membership.group, unfinished, ahead)
            left_ms = max(0, round((until - loop.time()) * limits.SECOND_MS))
            slice_ms = min(left_ms, membership.group.spec.heartbeat_ms)
            reads, passed = await self._select(membership.group, starts, size, slice_ms)
            ended |= {read.shard: read for read in reads if read.ended and read not in passed}
            level = [member_shard for member_shard in unfinished if member_shard.shard not in ahead]
            if await self._finish_ended(membership, level, reads):
                continue
            lost = await self._lost(membership)
            levels = [] if lost else [read for read in passed if read.shard not in ahead]
            committed = await self._commit_passed(membership, levels)
            rest = [read for read in passed if read.shard not in committed]
            progress.pass_over(rest, membership.generation)
            has_news = lost or any(read.records or read.gap for read in reads)
            is_over = left_ms == 0 and (not passed or loop.time() > passes_until)
            if has_news or is_over or not is_there():
                assigned = {member_shard.shard for member_shard in membership.assigned}
                rest = [read for shard, read in ended.items() if shard in assigned]
                reads = [*reads, *(one for one in rest if one not in reads)]
                return _fetched(membership, reads, lost, progress.passed(membership.assigned))

    async def _membership(
        self, name: GroupName, member_id: MemberId, instance: int | None, new_instance: bool
    ) -> Membership:
        """Return the shards to read, after joining if necessary, and with their starts."""
        if not member_id:
            return await self._starts.stored(await self._everything(name))
        if new_instance:
            begin = partial(self._members.begin_instance, name, member_id)
            membership = await self._assignments.join(begin)
        else:
            load = partial(self._members.ensure_member, name, member_id, instance)
            membership = await self._assignments.read(name, member_id, instance, load)
        if membership.is_cached:
            return membership
        return self._assignments.store(await self._starts.stored(membership))

    async def _everything(self, name: GroupName) -> Membership:
        """Return all that a simple group reads: every shard whose parents it has finished."""
        group, _, shards = await self._offsets.describe(name)
        if group.spec.kind is not GroupKind.SIMPLE:
            raise ValidationFailed.at(
                "/member", "Query parameter 'member' is required for ordered groups", "required"
            )
        self._offsets.remember(group)
        stream = await self._offsets.stream(group)
        lineage = [Link(shard.index, shard.parents) for shard in stream.shards]
        finished = [shard for shard, assignment in shards.items() if assignment.lease.finished]
        assigned = tuple(
            _member_shard(shard, shards.get(shard)) for shard in eligible(lineage, finished)
        )
        return Membership(group=group, member_id="", assigned=assigned, revoked=())

    async def _lost(self, membership: Membership) -> list[ShardRead]:
        """Return gaps for shards that expired before the group had finished them.

        They are reported with their children, until those are committed. How much was left in the shard is unknown.
        """
        new = [
            member_shard for member_shard in membership.assigned if member_shard.committed is None
        ]
        if not new or membership.group.spec.paused or membership.is_cached:
            return []
        stream = await self._offsets.stream(membership.group)
        existing = {shard.index: shard for shard in stream.shards}
        parents = {
            parent
            for member_shard in new
            if member_shard.shard in existing
            for parent in existing[member_shard.shard].parents
            if parent not in existing
        }
        if not parents:
            return []
        assignment = await self._rows.assignment(membership.group.name)
        shards = {} if assignment is None else assignment[2]
        return [
            _expired_read(parent, shards[parent].position or 0)
            for parent in sorted(parents)
            if parent in shards and not shards[parent].lease.finished
        ]

    async def _positions(
        self, group: Group, member_shards: Sequence[MemberShard], ahead: Mapping[int, int]
    ) -> dict[int, int]:
        """Return the offset at which each shard is read."""
        positions = dict(ahead)
        for place in member_shards:
            if place.shard not in positions:
                positions[place.shard] = await self._starts.position(group, place)
        return positions

    async def _select(
        self, group: Group, starts: Mapping[int, int], size: FetchSize, wait_ms: int
    ) -> tuple[list[ShardRead], list[ShardRead]]:
        """Return the reads with their selected records, and those that have passed over all."""
        reads = await self._read(group, starts, size, wait_ms)
        matches = size.matches(group.stream)
        if matches is None:
            return reads, []
        selected = select_reads(reads, matches, size.records_max, size.bytes_max)
        passed = [
            after
            for before, after in zip(reads, selected, strict=True)
            if before.records
            and not after.records
            and not after.gap  # which must be reported first
        ]
        return selected, passed

    async def _commit_passed(self, membership: Membership, passed: Sequence[ShardRead]) -> set[int]:
        """Commit the ends of reads from the group's position that selected no record.

        Returns the shards whose commits were accepted. Gaps and lost shards are not passed over before a member was told.
        """
        if not passed:
            return set()
        commits = [
            Commit(read.shard, read.next_offset, membership.member_id, membership.generation)
            for read in passed
        ]
        results = await self._offsets.commit(membership.group.name, commits)
        return {result.shard for result in results if isinstance(result, GroupOffset)}

    async def _read(
        self, group: Group, starts: Mapping[int, int], size: FetchSize, wait_ms: int
    ) -> list[ShardRead]:
        if not starts:
            await asyncio.sleep(wait_ms / limits.SECOND_MS)
            return []
        try:
            reads = await self._reader.read_shards(
                group.stream,
                starts,
                records_max=size.raw_records_max,
                bytes_max=size.raw_bytes_max,
                wait_ms=wait_ms,
                stream_id=group.stream_id,
            )
        except OffsetOutOfRange:
            reads = await self._read_from_ends(group, starts)
        stream = await self._offsets.stream(group)
        for read in reads:
            self._offsets.observe_high_watermark(stream, read.shard, read.tip)
        return reads

    async def _read_from_ends(self, group: Group, starts: Mapping[int, int]) -> list[ShardRead]:
        """Read from the ends of the shards where the group's positions lie beyond them.

        A hot store restored from an older copy ends before the group's position, until the next append.
        """
        states = await self._reader.shards(group.stream, group.stream_id)
        tips = {state.shard.index: state.next for state in states}
        lower = {shard: min(at, tips.get(shard, at)) for shard, at in starts.items()}
        return await self._reader.read_shards(group.stream, lower, stream_id=group.stream_id)

    async def _finish_ended(
        self,
        membership: Membership,
        member_shards: Sequence[MemberShard],
        reads: Sequence[ShardRead],
    ) -> bool:
        """Finish closed shards that were empty, or committed to their end before they were closed.

        `member_shards` were read from the group's position. Returns whether there may be other shards to read now.
        """
        committed = {member_shard.shard: member_shard.committed for member_shard in member_shards}
        over = [
            read
            for read in reads
            if read.ended
            and not read.records
            and read.gap is None
            and read.shard in committed
            and committed[read.shard] in (None, read.next_offset)
        ]
        if not over or membership.is_cached:
            return False
        commits = [
            Commit(read.shard, read.next_offset, membership.member_id, membership.generation)
            for read in over
        ]
        return await self._offsets.finish(membership.group, commits)


def _member_shard(shard: int, state: GroupShard | None) -> MemberShard:
    return MemberShard(shard, 0, None) if state is None else member_shard(state)


def _expired_read(shard: int, offset: int) -> ShardRead:
    return ShardRead(shard, (), offset, offset, offset, 0, Gap(offset, offset, GapReason.EXPIRED))


def _fetched(
    membership: Membership,
    reads: Sequence[ShardRead],
    lost: Sequence[ShardRead],
    passed: Mapping[int, int],
) -> Fetched:
    """Return the reads, and the group's positions after them.

    A commit of these also acknowledges the shards reported as lost.
    """
    moved = [read for read in reads if lost or read.records or read.gap or read.ended]
    return Fetched(
        membership=membership,
        reads=tuple(sorted([*reads, *lost], key=lambda read: read.shard)),
        positions={**passed, **{read.shard: read.next_offset for read in moved}},
    )
