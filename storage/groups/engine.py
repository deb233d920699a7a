"""Consumer group engine: members share a stream's shards and commit their offsets.

    join ──▶ heartbeat ──▶ … ──▶ leave         or silent for a session: its shards go to others
               │  ▲
               ▼  │ what it reads, what it is to give up, the generation
    read from committed ──▶ commit the next offset, with the generation

Postgres decides who reads what (`storage.postgres.repositories.groups`), and the hot store commits offsets by those leases
(`storage.groups.offset_store`). Reading removes nothing and can be repeated; only commits, and resets, move a group. docs/internals/rebalance.md explains the protocol.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Unpack

from storage.catalog.catalog import Catalog
from storage.catalog.definition_store import DefinitionRules, DefinitionStore
from storage.concurrency.isolation import Isolation
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.definitions import Put, PutOptions
from storage.domain.errors import (
    GroupNotFound,
    MillstreamError,
    OffsetOutOfRange,
    ShardNotFound,
    ValidationFailed,
)
from storage.domain.groups.assignment import Member, MemberId
from storage.domain.groups.group import (
    Commit,
    CommitResult,
    Group,
    GroupKind,
    GroupSpec,
    MemberShard,
    Membership,
    group_not_found,
)
from storage.domain.limits import Limits
from storage.domain.names import GroupName, StreamName, new_log_id
from storage.domain.streams.stream import ReadFrom, Stream
from storage.groups.assignment_cache import AssignmentCache
from storage.groups.coordinator import GroupCoordinator, MembershipChange, reevaluate
from storage.groups.fetch import GroupFetcher
from storage.groups.lag import LagReader
from storage.groups.membership import GroupMembership
from storage.groups.offset_copier import OffsetCopier
from storage.groups.offset_store import OffsetStore
from storage.groups.offsets import OffsetCommitter
from storage.groups.positions import GroupPositions
from storage.groups.start_offsets import StartOffsets
from storage.postgres.database import Database
from storage.postgres.listener import Listener
from storage.postgres.repositories.group_mapping import GroupShard
from storage.postgres.repositories.groups import GroupRows
from storage.streams.engine import Streams
from storage.streams.read import RecordReader


class Groups:
    """The consumer groups of a deployment.

    Every verb raises GroupNotFound for a group that does not exist.
    """

    def __init__(
        self,
        *,
        database: Database,
        hot: OffsetStore,
        listener: Listener,
        streams: Streams,
        reader: RecordReader,
        catalog: Catalog,
        clock: Clock,
        limits: Limits,
        isolation: Isolation,
    ) -> None:
        self._isolation = isolation
        self._rows = GroupRows(database)
        self._store = DefinitionStore(self._rows, _RULES, clock)
        self.pause = self._store.pause
        """Pause delivery to the group's members, or resume it.

        They notice at their next heartbeat; shards stay assigned, commits are accepted. Raises ValidationFailed for a simple
        group.
        """
        self.list_groups = self._store.page
        self._streams = streams
        self._reader = reader
        self._catalog = catalog
        self._clock = clock
        self._hot = hot
        self._assignments = AssignmentCache(hot, listener)
        self._coordinator = GroupCoordinator(self._rows, clock, limits, hot)
        self.copier = OffsetCopier(self._rows, hot)
        self._offsets = OffsetCommitter(
            rows=self._rows,
            hot=hot,
            copier=self.copier,
            changes=self._coordinator,
            reader=reader,
            catalog=catalog,
            clock=clock,
        )
        self._starts = StartOffsets(self._rows, self._offsets, reader)
        self.positions = GroupPositions(
            rows=self._rows,
            coordinator=self._coordinator,
            offsets=self._offsets,
            starts=self._starts,
            reader=reader,
            clock=clock,
        )
        self.lags = LagReader(self._rows, self._offsets, self._starts, reader, clock)
        self._members = GroupMembership(self._rows, hot, self._coordinator, self._offsets)
        self.fetcher = GroupFetcher(
            self._rows, self._members, self._offsets, self._starts, reader, self._assignments
        )

    async def close(self) -> None:
        """Stop the work in progress."""
        await self._members.close()
        await self._offsets.close()
        await self._coordinator.close()
        await self.copier.close()

    # Definitions

    async def put(
        self,
        name: GroupName,
        spec: GroupSpec,
        *,
        offsets: Mapping[int, int] | None = None,
        **options: Unpack[PutOptions],
    ) -> Put[Group]:
        """Create the group or change its timeouts; whether it is paused does not change.

        A new group has committed `offsets`, by shard, instead of what its start policy says. Raises StreamNotFound,
        ValidationFailed for what is not valid or cannot change, PreconditionFailed, AlreadyExists for
        `create_only` with a group that exists.
        """
        spec.check()
        stream = await self._catalog.fresh_stream(StreamName(spec.stream, name.namespace))
        if stream.is_view:
            detail = "Consumer groups cannot read a queue's stream view; read it by offset"
            raise ValidationFailed.at("/stream", detail, "not_supported")
        shards = (
            await self._starts.initial_offsets(stream, spec.start)
            if offsets is None
            else [(shard.index, offsets.get(shard.index), False) for shard in stream.shards]
        )
        return await self._store.put(
            name,
            spec,
            create=partial(_new_group, stream_id=stream.stream_id),
            insert=lambda locked, group: locked.insert_with_shards(group, shards),
            **options,
        )

    async def delete(self, name: GroupName, *, if_match: int | None = None) -> Group:
        """Delete the group, its offsets and bookmarks; return its last definition.

        Raises PreconditionFailed.
        """
        async with self._store.changing(name, if_match) as (locked, group):
            await locked.delete(group, self._clock.now_ms())
            await self._coordinator.freeze(group)  # or others could commit to it
        return group

    async def get(self, name: GroupName) -> Group:
        """Return the group's definition."""
        return await self._offsets.find(name)

    async def check_exists(self, name: GroupName) -> None:
        """Check that the group exists; in an outage of Postgres, that this process has read it."""
        find = partial(self._offsets.find, name)
        if await self._assignments.unless_away(find) is None:
            await self._offsets.cached(name)

    async def of_stream(
        self, stream: Stream, limit: int = limits.PAGE_ITEMS_DEFAULT
    ) -> list[Group]:
        """Return the groups that read a stream, by name; at most 1000."""
        return await self._rows.of_stream(
            stream.stream_id, max(1, min(limit, limits.PAGE_ITEMS_MAX))
        )

    async def names(self, namespace: str, part: str = "") -> list[str]:
        """Return names of groups that contain `part`, by name; at most LISTED_NAMES_MAX."""
        return await self._rows.names(namespace, part, limits.LISTED_NAMES_MAX)

    async def with_names(self, namespace: str, names: Sequence[str]) -> dict[str, Group]:
        """Return those of the named groups that exist; at most PAGE_ITEMS_MAX names."""
        groups = await self._rows.with_names(namespace, names[: limits.PAGE_ITEMS_MAX])
        return {group.name.name: group for group in groups}

    async def describe(
        self, name: GroupName
    ) -> tuple[Group, tuple[Member, ...], dict[int, GroupShard]]:
        """Return the group, its members and its shards, in one consistent snapshot."""
        return await self._offsets.describe(name)

    # Members

    async def join(
        self, name: GroupName, *, member_id: MemberId = "", instance_id: str = ""
    ) -> Membership:
        """Become a member; joining again under the same name fences the previous instance.

        `instance_id` makes a static member of that name, which keeps its shards for a while when it is
        silent. Raises GroupFull, ValidationFailed.
        """
        join = partial(self._members.join, name, member_id, instance_id)
        membership = await self._assignments.join(join)
        return self._assignments.store(await self._with_starts(membership))

    async def heartbeat(
        self,
        name: GroupName,
        member_id: MemberId,
        *,
        generation: int | None = None,
        owned: Collection[int] | None = None,
    ) -> Membership:
        """Send a member's heartbeat; return the shards it should read, and those to give up.

        `generation`: the one that the member has; `owned`: the shards that it still holds, so that the others of those it was
        to give up are free. In an outage of Postgres the last assignment stands, and nothing is recorded. Raises
        MemberUnknown, or StaleGeneration when a later instance of it has joined.
        """
        load = partial(self._members.heartbeat, name, member_id, generation, owned)
        membership = await self._assignments.read(name, member_id, generation, load)
        if membership.is_cached:
            return membership
        return self._assignments.store(await self._with_starts(membership))

    async def _with_starts(self, membership: Membership) -> Membership:
        """Store the starts that are missing; if that fails now, the next call does it.

        The member has joined already.
        """
        try:
            return await self._starts.stored(membership)
        except MillstreamError:
            return membership

    async def leave(
        self,
        name: GroupName,
        member_id: MemberId,
        *,
        for_good: bool = True,
        generation: int | None = None,
    ) -> None:
        """Leave the group and give up all shards immediately.

        A static member that leaves without `for_good` keeps its shards for a while. `generation`: the one that the
        member has. Raises MemberUnknown, or StaleGeneration when a later instance of it has joined.
        """
        await self._members.leave(name, member_id, for_good=for_good, generation=generation)

    # Reading and committing

    async def position(self, group: Group, place: MemberShard) -> int:
        """Return the offset at which reading a shard that the group assigned begins.

        Raises StreamNotFound.
        """
        return await self._starts.position(group, place)

    async def observe_high_watermark(self, group: Group, shard: int, tip: int) -> None:
        """Record that a shard was read up to `tip`.

        A commit up to there need not check the end of the log.
        """
        self._offsets.observe_high_watermark(await self._offsets.stream(group), shard, tip)

    async def commit(self, name: GroupName, commits: Sequence[Commit]) -> list[CommitResult]:
        """Commit the next offset of each shard; return a result or an error for each, in order.

        An offset behind the committed one changes nothing, and the result has the group's committed offset.
        Errors: OffsetOutOfRange, ShardNotFound, StaleGeneration, MemberUnknown.
        """
        return await self._offsets.commit(name, commits)

    async def finish(self, group: Group, commit: Commit) -> bool:
        """Commit the end of a closed shard; return whether the commit was accepted.

        The caller has just read that end. Its children may then be assigned.
        """
        return await self._offsets.finish(group, [commit])

    # For the sweep

    async def rebalance_all(self) -> int:
        """Rebalance every group whose assignment may have to change.

        Returns the number of groups that have members or had work: while it is 0, nothing can become due. Nothing
        waits for it: joins and heartbeats have the same effect.
        """
        if not await self._rows.exist():
            return 0
        await self._coordinator.record_database_heartbeat()
        for name, shard, committed in await self._rows.closed_and_committed():
            await self._finish_closed(name, shard, committed)
        names = await self._rows.to_settle(self._coordinator.now())
        for name in names:
            await self._isolation.visit(
                "groups", f"groups/{name}", partial(self._reevaluate, name), None
            )
        return len(names) or await self._rows.count_with_members()

    async def _reevaluate(self, name: GroupName) -> None:
        with suppress(GroupNotFound):  # deleted since it was listed
            await self._coordinator.apply(name, MembershipChange(reevaluate))

    async def delete_read(self, stream: Stream) -> None:
        """Delete the records of a stream that all of its groups have committed.

        What remains for a later round is little.
        """
        for shard, committed in await self._rows.read_by_all(stream.stream_id):
            with suppress(ShardNotFound, OffsetOutOfRange):  # expired, or a store that lost its end
                await self._streams.truncate(stream.name, shard, committed, stream.stream_id)

    async def _finish_closed(self, name: GroupName, shard: int, committed: int) -> None:
        try:
            group = await self._offsets.find(name)
            where = ReadFrom(offset=committed)
            read = await self._reader.read_one(group.stream, shard, where, group.stream_id)
        except MillstreamError:
            return  # expired, deleted, or unreachable: the next round shows which
        if read.ended and not read.records and read.next_offset == committed:
            await self._rows.finish(name, shard, committed)


def _new_group(name: GroupName, spec: GroupSpec, now_ms: int, stream_id: str) -> Group:
    """Return a new group, with generations above those of any earlier group of its name."""
    return Group(
        name=name,
        group_id=new_log_id(),
        stream_id=stream_id,
        spec=spec,
        version=1,
        generation=now_ms,
        created_at_ms=now_ms,
        changed_at_ms=now_ms,
    )


def _refuse_change(old: GroupSpec, new: GroupSpec) -> None:
    for field in ("stream", "kind", "start", "start_time_ms"):
        if getattr(old, field) != getattr(new, field):
            pointer = "/start_time" if field == "start_time_ms" else f"/{field}"
            raise ValidationFailed.at(
                pointer, "Immutable: create another group, or reset this one", "immutable"
            )


def _check_pausable(spec: GroupSpec) -> None:
    if spec.kind is GroupKind.SIMPLE:
        detail = "A simple group has no members; only ordered groups can be paused"
        raise ValidationFailed.at("/kind", detail, "not_supported")


_RULES: DefinitionRules[GroupName, GroupSpec, Group] = DefinitionRules(
    not_found=group_not_found,
    check_change=_refuse_change,
    is_pausable=True,
    check_pause=_check_pausable,
)
