"""Offset commits: batched into one statement, and never past the end of a shard (G3).

    commit ──▶ is the offset within the shard? ──▶ is the generation the lease's? ──▶ moved, and never back
               cached, or read from the log          decided by the statement, row by row

The end of a log only increases, so an end that was seen once is enough to accept every lower offset. A commit at the
end of a closed shard finishes the shard for the group.
"""

import asyncio
from collections.abc import Sequence

from storage.catalog.catalog import Catalog
from storage.concurrency.batcher import Batcher
from storage.concurrency.bounded_cache import BoundedCache
from storage.domain import limits
from storage.domain.errors import (
    MemberUnknown,
    MillstreamError,
    ShardNotFound,
    StaleGeneration,
    StorageUnavailable,
    StreamNotFound,
    ValidationFailed,
)
from storage.domain.groups.group import Commit, CommitResult, Group, GroupOffset, group_not_found
from storage.domain.names import GroupName, LogId
from storage.domain.streams.stream import ReadFrom, Stream
from storage.groups.assignment_cache import AssignmentCache
from storage.groups.coordinator import GroupCoordinator, MembershipChange, reevaluate
from storage.postgres.repositories.groups import GroupRows, MovedTo, PendingCommit
from storage.streams.read import RecordReader

_GROUPS_CACHED_MAX = 10_000


class OffsetCommitter:
    """Committer of one process's offsets."""

    def __init__(
        self,
        rows: GroupRows,
        changes: GroupCoordinator,
        reader: RecordReader,
        catalog: Catalog,
        assignments: AssignmentCache,
    ) -> None:
        self._rows = rows
        self._assignments = assignments
        self._coordinator = changes
        self._reader = reader
        self._catalog = catalog
        self._batcher = Batcher[PendingCommit, MovedTo | None](self._flush)
        self._reads = Batcher[GroupName, Group | None](self._find_many)
        self._high_watermarks: BoundedCache[LogId, int] = BoundedCache(
            limits.GROUP_HIGH_WATERMARKS_CACHED_MAX
        )
        self._groups: BoundedCache[GroupName, Group] = BoundedCache(_GROUPS_CACHED_MAX)

    async def close(self) -> None:
        """Stop; callers that wait get an error."""
        await self._batcher.close()
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
        group = self._groups.get(name) or await self.find(name)
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
        requests = [PendingCommit(group.name, group.stream_id, commit, True) for commit in commits]
        moves = await asyncio.gather(*(self._batcher.submit(one) for one in requests))
        return all(one is not None and one.offset is not None for one in moves)

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
        return await asyncio.gather(*(self._try(group, stream, commit) for commit in commits))

    async def _try(self, group: Group, stream: Stream, commit: Commit) -> CommitResult:
        try:
            ends = await self._ends(stream, commit)
            request = PendingCommit(group.name, group.stream_id, commit, ends)
            moved = await self._batcher.submit(request)
            if moved is not None and not moved.has_shard and moved.stream_id == group.stream_id:
                await self._coordinator.apply(
                    group.name, MembershipChange(reevaluate)
                )  # the shard is new
                moved = await self._batcher.submit(request)
            return _result(group, commit, moved)
        except _GroupRecreated:
            raise
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

    async def _flush(
        self, requests: Sequence[PendingCommit]
    ) -> list[MovedTo | MillstreamError | None]:
        """Commit with one statement, or several if a shard of a group is named more than once.

        An update affects a row only once.
        """
        answers: list[MovedTo | MillstreamError | None] = [None] * len(requests)
        left = list(range(len(requests)))
        while left:
            first_indexes: dict[tuple[GroupName, int], int] = {}
            for index in left:
                first_indexes.setdefault(
                    (requests[index].group, requests[index].commit.shard), index
                )
            round_ = list(first_indexes.values())
            for index, answer in zip(
                round_, await self._commit_round(requests, round_), strict=True
            ):
                answers[index] = answer
            left = [index for index in left if index not in set(round_)]
        return answers

    async def _commit_round(
        self, requests: Sequence[PendingCommit], first_indexes: Sequence[int]
    ) -> Sequence[MovedTo | MillstreamError | None]:
        round_ = [requests[index] for index in first_indexes]
        try:
            moves = await self._rows.commit(round_, self._coordinator.now())
        except MillstreamError as error:
            return [error] * len(first_indexes)
        for request, moved in zip(round_, moves, strict=True):
            if moved is not None and moved.offset is not None:
                self._assignments.observe_commit(request.group, request.commit, moved.offset)
        return moves


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


def _result(group: Group, commit: Commit, moved: MovedTo | None) -> CommitResult:
    if moved is None or moved.stream_id != group.stream_id:
        raise _GroupRecreated
    if moved.offset is not None:
        return GroupOffset(commit.shard, moved.offset)
    if not moved.has_shard:
        return ShardNotFound(f"The group does not read shard {commit.shard}.")
    if moved.simple:
        return StaleGeneration()
    if commit.generation is None or not commit.member_id:
        detail = "A commit to an ordered group requires a member and a generation"
        return ValidationFailed.at("/generation", detail, "required")
    return StaleGeneration() if moved.has_member else MemberUnknown()
