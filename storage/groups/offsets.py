"""Committing offsets: many commits leave in one statement, and none goes past the end of its shard (G3).

    commit ──▶ is the offset within the shard? ──▶ is the generation the lease's? ──▶ moved, and never back
               remembered, or asked of the log       decided by the statement, row by row

An end of a log only rises, so one that was seen once is enough to let every lower offset pass. A commit at the end
of a closed shard finishes the shard for the group.
"""

import asyncio
from collections.abc import Sequence

from storage.catalog.catalog import Catalog
from storage.concurrency.batcher import Batcher
from storage.domain import limits
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
from storage.domain.groups.group import Commit, CommitResult, Committed, Group
from storage.domain.names import GroupName, LogId
from storage.domain.streams.stream import ReadFrom, Stream
from storage.groups.coordinator import Change, GroupCoordinator, nothing_else
from storage.postgres.repositories.groups import AskedCommit, GroupRows, MovedTo
from storage.streams.engine import Streams

_GROUPS_KNOWN_MAX = 10_000


class OffsetCommitter:
    """The commits of one process."""

    def __init__(
        self, rows: GroupRows, changes: GroupCoordinator, streams: Streams, catalog: Catalog
    ) -> None:
        self._rows = rows
        self._changes = changes
        self._streams = streams
        self._catalog = catalog
        self._together = Batcher[AskedCommit, MovedTo | None](self._flush)
        self._tips: dict[LogId, int] = {}
        self._groups: dict[GroupName, Group] = {}

    async def close(self) -> None:
        """Stop; whoever waits is told so."""
        await self._together.close()

    def remember(self, group: Group) -> None:
        """A group as it was just seen: which stream it reads does not change while it is there."""
        if len(self._groups) >= _GROUPS_KNOWN_MAX:
            del self._groups[next(iter(self._groups))]
        self._groups[group.name] = group

    def saw(self, stream: Stream, shard: int, tip: int) -> None:
        """How far a shard's log reached when it was read."""
        self._saw(stream.shard(shard).log_id, tip)

    def _saw(self, log_id: LogId, tip: int) -> None:
        if len(self._tips) >= limits.GROUP_TIPS_KNOWN_MAX:
            del self._tips[next(iter(self._tips))]
        self._tips[log_id] = max(tip, self._tips.get(log_id, 0))

    async def commit(self, name: GroupName, commits: Sequence[Commit]) -> list[CommitResult]:
        """Commit each offset, or say why not, in their order. Raises GroupNotFound, StreamNotFound, ValidationFailed."""
        _check(commits)
        group = self._groups.get(name) or await self.find(name)
        for _ in range(limits.MENDS_MAX):
            try:
                return await self._commit(group, commits)
            except _GroupMadeAnew:
                group = await self.find(name)
        raise StorageUnavailable("The group is being made anew; try again.")

    async def finish(self, group: Group, commits: Sequence[Commit]) -> bool:
        """Commit the ends of closed shards, which the caller has just seen. Whether all of them were taken."""
        asked = [AskedCommit(group.name, group.stream_id, commit, True) for commit in commits]
        found = await asyncio.gather(*(self._together.ask(one) for one in asked))
        return all(one is not None and one.offset is not None for one in found)

    async def find(self, name: GroupName) -> Group:
        """The group as Postgres has it. Raises GroupNotFound."""
        found = await self._rows.find(name)
        if found is None:
            self._groups.pop(name, None)
            raise GroupNotFound(f"There is no group '{name.name}'.")
        self.remember(found)
        return found

    async def stream(self, group: Group) -> Stream:
        """The group's stream. Raises StreamNotFound when it is gone, or another one has its name."""
        stream = await self._catalog.stream(group.stream)
        if stream.stream_id != group.stream_id:
            stream = await self._catalog.fresh_stream(group.stream)
        if stream.stream_id != group.stream_id:
            raise StreamNotFound(f"The stream of group '{group.name.name}' is gone.")
        return stream

    async def _commit(self, group: Group, commits: Sequence[Commit]) -> list[CommitResult]:
        try:
            stream = await self.stream(group)
            if not {commit.shard for commit in commits} <= {one.index for one in stream.shards}:
                stream = await self._catalog.fresh_stream(group.stream)
        except StreamNotFound:
            raise _GroupMadeAnew from None
        return await asyncio.gather(*(self._try(group, stream, commit) for commit in commits))

    async def _try(self, group: Group, stream: Stream, commit: Commit) -> CommitResult:
        try:
            ends = await self._ends(stream, commit)
            asked = AskedCommit(group.name, group.stream_id, commit, ends)
            found = await self._together.ask(asked)
            if found is not None and not found.has_shard and found.stream_id == group.stream_id:
                await self._changes.do(group.name, Change(nothing_else))  # the shard is new
                found = await self._together.ask(asked)
            return _result(group, commit, found)
        except _GroupMadeAnew:
            raise
        except MillstreamError as error:
            return error

    async def _ends(self, stream: Stream, commit: Commit) -> bool:
        """Whether the offset is the end of a closed shard. Raises OffsetOutOfRange past an end, ShardNotFound."""
        shard = stream.shard(commit.shard)
        known = self._tips.get(shard.log_id, 0)
        if commit.offset < known or (commit.offset == known and shard.is_open):
            return False
        read = await self._streams.read_shard(stream.name, commit.shard, ReadFrom(tail=0))
        self._saw(shard.log_id, read.tip)
        if commit.offset > read.tip:
            # Beyond the end of a hot store that was restored, where the archive may go on.
            await self._streams.read_shard(
                stream.name,
                commit.shard,
                ReadFrom(offset=commit.offset),
                records_max=1,
                bytes_max=1,
            )
        return read.ended and read.tip == commit.offset

    async def _flush(self, asked: Sequence[AskedCommit]) -> list[MovedTo | MillstreamError | None]:
        """One statement, or more where a shard of a group is named more than once: an update meets a row once."""
        answers: list[MovedTo | MillstreamError | None] = [None] * len(asked)
        left = list(range(len(asked)))
        while left:
            places: dict[tuple[GroupName, int], int] = {}
            for place in left:
                places.setdefault((asked[place].group, asked[place].commit.shard), place)
            round_ = list(places.values())
            for place, answer in zip(round_, await self._commit_round(asked, round_), strict=True):
                answers[place] = answer
            left = [place for place in left if place not in set(round_)]
        return answers

    async def _commit_round(
        self, asked: Sequence[AskedCommit], places: Sequence[int]
    ) -> Sequence[MovedTo | MillstreamError | None]:
        try:
            return await self._rows.commit([asked[place] for place in places], self._changes.now())
        except MillstreamError as error:
            return [error] * len(places)


class _GroupMadeAnew(Exception):
    """The group that this process remembered is gone, and another may have its name."""


def _check(commits: Sequence[Commit]) -> None:
    if not 1 <= len(commits) <= limits.COMMIT_SHARDS_MAX:
        detail = f"A commit names 1 to {limits.COMMIT_SHARDS_MAX} shards"
        raise ValidationFailed.at("/offsets", detail, "out_of_range")
    if len({commit.shard for commit in commits}) != len(commits):
        raise ValidationFailed.at("/offsets", "A commit names each shard once", "conflict")


def _result(group: Group, commit: Commit, found: MovedTo | None) -> CommitResult:
    if found is None or found.stream_id != group.stream_id:
        raise _GroupMadeAnew
    if found.offset is not None:
        return Committed(commit.shard, found.offset)
    if not found.has_shard:
        return ShardNotFound(f"The group does not read shard {commit.shard}.")
    if found.simple:
        return StaleGeneration()
    if commit.generation is None or not commit.member_id:
        detail = "In an ordered group a commit says its member and generation"
        return ValidationFailed.at("/generation", detail, "required")
    return StaleGeneration() if found.has_member else MemberUnknown()
