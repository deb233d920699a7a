"""Offset commits: decided by the hot store, and never past the end of a shard (G3).

    commit ──▶ is the offset within the shard? ──▶ is the generation the lease's? ──▶ moved, and never back ──▶ row
               cached, or read from the log          the hot store, or Postgres where it was not seeded      copied soon

The end of a log only increases, so an end that was seen once is enough to accept every lower offset. A commit at the
end of a closed shard finishes the shard for the group.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from storage.catalog.catalog import Catalog
from storage.concurrency.batcher import Batcher
from storage.concurrency.bounded_cache import BoundedCache
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    GroupNotFound,
    MemberUnknown,
    MillstreamError,
    ShardNotFound,
    StaleGeneration,
    StorageUnavailable,
    StreamNotFound,
    ValidationFailed,
)
from storage.domain.groups.assignment import Assignment, Member, ShardLease
from storage.domain.groups.committed_offsets import CommittedShard, GroupOffsets
from storage.domain.groups.group import (
    Commit,
    CommitResult,
    Group,
    GroupKind,
    GroupOffset,
    group_not_found,
)
from storage.domain.names import GroupName, LogId
from storage.domain.streams.stream import ReadFrom, Stream
from storage.groups.coordinator import GroupCoordinator, MembershipChange, reevaluate
from storage.groups.offset_copier import OffsetCopier
from storage.groups.offset_store import OffsetStore
from storage.postgres.repositories.group_mapping import GroupShard, OffsetCopy
from storage.postgres.repositories.groups import GroupRows
from storage.streams.read import RecordReader

_GROUPS_CACHED_MAX = 10_000
_SEED = MembershipChange(reevaluate, rebalances=False)


class _PendingCommit(NamedTuple):
    """A commit within its shard. `ends`: the shard is closed, and this is its end."""

    commit: Commit
    ends: bool


class OffsetCommitter:
    """Committer of one process's offsets, and reader of those of all."""

    def __init__(
        self,
        *,
        rows: GroupRows,
        hot: OffsetStore,
        copier: OffsetCopier,
        changes: GroupCoordinator,
        reader: RecordReader,
        catalog: Catalog,
        clock: Clock,
    ) -> None:
        self._rows = rows
        self._hot = hot
        self._copier = copier
        self._coordinator = changes
        self._reader = reader
        self._catalog = catalog
        self._clock = clock
        self._reads = Batcher[GroupName, Group | None](self._find_many)
        self._high_watermarks: BoundedCache[LogId, int] = BoundedCache(
            limits.GROUP_HIGH_WATERMARKS_CACHED_MAX
        )
        self._groups: BoundedCache[GroupName, Group] = BoundedCache(_GROUPS_CACHED_MAX)

    async def close(self) -> None:
        """Stop; callers that wait get an error."""
        await self._reads.close()

    def remember(self, group: Group) -> None:
        """Cache a group that was just read: its stream does not change while it exists."""
        self._groups[group.name] = group

    def observe_high_watermark(self, stream: Stream, shard: int, tip: int) -> None:
        """Record the end of a shard's log at the time of a read."""
        self._observe(stream.shard(shard).log_id, tip)

    def _observe(self, log_id: LogId, tip: int) -> None:
        self._high_watermarks[log_id] = max(tip, self._high_watermarks.get(log_id, 0))

    async def commit(self, name: GroupName, commits: Sequence[Commit]) -> list[CommitResult]:
        """Commit each offset; return a result or an error for each, in order.

        Raises GroupNotFound, StreamNotFound, ValidationFailed.
        """
        _check(commits)
        group = await self.cached(name)
        for _ in range(limits.REPAIR_ATTEMPTS_MAX):
            try:
                return await self._commit(group, commits)
            except _GroupRecreated:
                group = await self.find(name)
        raise StorageUnavailable("The group is being recreated; try again.")

    async def finish(self, group: Group, commits: Sequence[Commit]) -> bool:
        """Commit the ends of closed shards; return whether all of them were accepted.

        The caller has just read those ends.
        """
        try:
            results = await self._move(group, [_PendingCommit(commit, True) for commit in commits])
        except _GroupRecreated:
            return False
        return all(isinstance(result, GroupOffset) for result in results.values())

    # Reads

    async def describe(
        self, name: GroupName
    ) -> tuple[Group, tuple[Member, ...], dict[int, GroupShard]]:
        """Return the group, its members and its shards, with the offsets committed last.

        Raises GroupNotFound.
        """
        for _ in range(limits.REPAIR_ATTEMPTS_MAX):
            group, members, shards = await self._rows.describe(name)
            offsets = await self._hot.read(group)
            if not offsets.is_after(group.generation):
                break  # or there was a rebalance in between, and the rows do not match
        return group, members, {shard: _latest(row, offsets) for shard, row in shards.items()}

    async def cached(self, name: GroupName) -> Group:
        """Return the group that this process has read last, from Postgres if it has not yet.

        Raises GroupNotFound.
        """
        return self._groups.get(name) or await self.find(name)

    async def find(self, name: GroupName) -> Group:
        """Return the group from Postgres.

        Raises GroupNotFound.
        """
        group = await self._reads.submit(name)
        if group is None:
            self._groups.pop(name, None)
            raise group_not_found(name)
        self.remember(group)
        return group

    async def _find_many(self, names: Sequence[GroupName]) -> list[Group | None]:
        groups = await self._rows.find_many(names)
        return [groups.get(name) for name in names]

    async def stream(self, group: Group) -> Stream:
        """Return the group's stream.

        Raises StreamNotFound when it no longer exists, StreamRecreated when another stream has its name.
        """
        return await self._catalog.stream(group.stream, group.stream_id)

    async def _commit(self, group: Group, commits: Sequence[Commit]) -> list[CommitResult]:
        try:
            stream = await self.stream(group)
            if not {commit.shard for commit in commits} <= {one.index for one in stream.shards}:
                stream = await self._catalog.fresh_stream(group.stream, group.stream_id)
        except StreamNotFound:
            raise _GroupRecreated from None
        checked = await asyncio.gather(*(self._check_end(stream, commit) for commit in commits))
        within = [one for one in checked if isinstance(one, _PendingCommit)]
        moved = await self._move(group, within) if within else {}
        return [
            moved[commit.shard] if isinstance(one, _PendingCommit) else one
            for commit, one in zip(commits, checked, strict=True)
        ]

    async def _check_end(self, stream: Stream, commit: Commit) -> _PendingCommit | MillstreamError:
        try:
            return _PendingCommit(commit, await self._ends(stream, commit))
        except MillstreamError as error:
            return error

    async def _ends(self, stream: Stream, commit: Commit) -> bool:
        """Return whether the offset is the end of a closed shard.

        Raises OffsetOutOfRange past an end, ShardNotFound.
        """
        shard = stream.shard(commit.shard)
        tip = self._high_watermarks.get(shard.log_id, 0)
        if commit.offset < tip or (commit.offset == tip and shard.is_open):
            return False
        read = await self._reader.read_shard(
            stream.name, commit.shard, ReadFrom(tail=0), stream_id=stream.stream_id
        )
        self._observe(shard.log_id, read.tip)
        if commit.offset > read.tip:
            # Beyond the end of a hot store that was restored, where the archive may continue.
            where = ReadFrom(offset=commit.offset)
            await self._reader.read_one(stream.name, commit.shard, where, stream.stream_id)
        return read.ended and read.tip == commit.offset

    async def _move(
        self, group: Group, pending: Sequence[_PendingCommit]
    ) -> dict[int, CommitResult]:
        """Commit offsets that are within their shards; return a result or an error by shard.

        Raises _GroupRecreated.
        """
        results = dict[int, CommitResult]()
        undecided = list(pending)
        try:
            for _ in range(limits.REPAIR_ATTEMPTS_MAX):
                results |= await self._try(group, undecided)
                undecided = [one for one in undecided if one.commit.shard not in results]
                if not undecided:
                    return results
                results |= await self._refusals(group, [one.commit for one in undecided])
                undecided = [one for one in undecided if one.commit.shard not in results]
            raise StorageUnavailable("The group is being rebalanced; try again.")
        except MillstreamError as error:
            return results | {one.commit.shard: error for one in undecided}

    async def _try(
        self, group: Group, pending: Sequence[_PendingCommit]
    ) -> dict[int, CommitResult]:
        """Commit where the hot store can decide."""
        if not pending:
            return {}
        now = self._clock.script_time()
        answers = await self._hot.commit(group, [one.commit for one in pending], now)
        results = dict[int, CommitResult]()
        for (commit, ends), moved in zip(pending, answers, strict=True):
            if moved is not None:
                results[commit.shard] = GroupOffset(commit.shard, moved.offset)
                copy = _copy_of(group, commit.shard, moved, ends=ends)
                await self._copier.copy_end(copy) if ends else self._copier.add(copy)
        return results

    async def _refusals(
        self, group: Group, commits: Sequence[Commit]
    ) -> dict[int, MillstreamError]:
        """Seed the group from Postgres; return the errors of commits that it refuses, by shard."""
        assignment = await self._assignment(group, _SEED)
        if not {commit.shard for commit in commits} <= {one.shard for one in assignment.leases}:
            change = MembershipChange(reevaluate)  # the shard is new
            assignment = await self._assignment(group, change)
        leases = {lease.shard: lease for lease in assignment.leases}
        refusals = {
            commit.shard: _refusal(group, assignment, leases.get(commit.shard), commit)
            for commit in commits
        }
        return {shard: error for shard, error in refusals.items() if error is not None}

    async def _assignment(self, group: Group, change: MembershipChange) -> Assignment:
        try:
            changed = await self._coordinator.apply(group.name, change)
        except GroupNotFound:
            raise _GroupRecreated from None
        if changed.membership.group.group_id != group.group_id:
            raise _GroupRecreated
        return changed.assignment


class _GroupRecreated(Exception):
    """The cached group no longer exists; another one may have its name."""


def _check(commits: Sequence[Commit]) -> None:
    if not 1 <= len(commits) <= limits.COMMIT_SHARDS_MAX:
        detail = f"A commit must include 1 to {limits.COMMIT_SHARDS_MAX} shards"
        raise ValidationFailed.at("/offsets", detail, "out_of_range")
    if len({commit.shard for commit in commits}) != len(commits):
        raise ValidationFailed.at(
            "/offsets", "A commit can include each shard only once", "conflict"
        )


def _refusal(
    group: Group, assignment: Assignment, lease: ShardLease | None, commit: Commit
) -> MillstreamError | None:
    """Return why a commit is refused, or None: by the rule of commit_group_offsets.lua."""
    if lease is None:
        return ShardNotFound(f"The group does not read shard {commit.shard}.")
    if group.spec.kind is GroupKind.SIMPLE:
        is_stale = commit.generation is not None and commit.generation < lease.generation
        return StaleGeneration() if is_stale else None
    if commit.generation is None or not commit.member_id:
        detail = "A commit to an ordered group requires a member and a generation"
        return ValidationFailed.at("/generation", detail, "required")
    if lease.owner == commit.member_id and (
        lease.generation <= commit.generation <= assignment.generation
    ):
        return None
    return StaleGeneration() if assignment.member(commit.member_id) else MemberUnknown()


def _latest(row: GroupShard, offsets: GroupOffsets) -> GroupShard:
    entry = offsets.later(row.lease.shard, row.lease.generation, row.committed)
    if entry is None:
        return row
    return replace(row, committed=entry.committed, committed_at_ms=entry.committed_at_ms)


def _copy_of(group: Group, shard: int, moved: CommittedShard, *, ends: bool) -> OffsetCopy:
    return OffsetCopy(
        group_id=group.group_id,
        shard=shard,
        lease_generation=moved.lease_generation,
        offset=moved.offset,
        committed_at_ms=moved.committed_at_ms,
        ends=ends,
    )
