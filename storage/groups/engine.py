"""Consumer groups: members that share a stream, each shard read by one of them, and how far they are.

    join ──▶ heartbeat ──▶ … ──▶ leave         or silent for a session: its shards go to others
               │  ▲
               ▼  │ what it reads, what it is to give up, the generation
    read from committed ──▶ commit the next offset, with the generation

Postgres alone decides: see `storage.postgres.repositories.groups`. Reading takes nothing away and can be repeated; only
commits, and resets, move a group.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    GroupNotFound,
    InvalidCursor,
    MillstreamError,
    OffsetOutOfRange,
    PreconditionFailed,
    ShardNotFound,
    ValidationFailed,
)
from storage.domain.groups.assignment import Member, MemberId
from storage.domain.groups.group import (
    Bookmark,
    Commit,
    CommitResult,
    Fetched,
    Group,
    GroupSpec,
    Membership,
    Place,
    ResetSpec,
    ShardLag,
    ShardReset,
)
from storage.domain.limits import Limits
from storage.domain.names import GroupName, StreamName, new_log_id
from storage.domain.streams.stream import ReadFrom, Stream
from storage.groups.coordinator import Change, GroupCoordinator, nothing_else
from storage.groups.fetch import GroupFetcher
from storage.groups.membership import GroupMembers
from storage.groups.offsets import OffsetCommitter
from storage.groups.positions import GroupPositions
from storage.postgres.database import Database
from storage.postgres.repositories.group_mapping import GroupShard
from storage.postgres.repositories.groups import GroupRows
from storage.streams.engine import Streams


def _always() -> bool:
    return True


class Groups:
    """The groups of a deployment. Every verb raises GroupNotFound for a group that is not there."""

    def __init__(
        self, database: Database, streams: Streams, catalog: Catalog, clock: Clock, known: Limits
    ) -> None:
        self._rows = GroupRows(database)
        self._streams = streams
        self._catalog = catalog
        self._clock = clock
        self._changes = GroupCoordinator(self._rows, clock, known)
        self._offsets = OffsetCommitter(self._rows, self._changes, streams, catalog)
        self._positions = GroupPositions(self._rows, self._changes, self._offsets, streams, clock)
        self._members = GroupMembers(self._rows, self._changes, self._offsets)
        self._fetching = GroupFetcher(
            self._rows, self._members, self._offsets, self._positions, streams
        )

    async def close(self) -> None:
        """End what is under way."""
        await self._members.close()
        await self._offsets.close()
        await self._changes.close()

    # Definitions

    async def put(
        self,
        name: GroupName,
        spec: GroupSpec,
        *,
        if_match: int | None = None,
        create_only: bool = False,
    ) -> tuple[Group, bool]:
        """Create the group or change its timeouts; the group, and whether it was created.

        Raises StreamNotFound, ValidationFailed for what is not valid or cannot change, PreconditionFailed.
        """
        spec.check()
        stream = await self._catalog.fresh_stream(StreamName(spec.stream, name.namespace))
        if stream.is_view:
            detail = "A group reads a stream, and this is a queue's view: read it by offset"
            raise ValidationFailed.at("/stream", detail, "not_supported")
        shards = await self._positions.begin(stream, spec.start)
        async with self._rows.named(name) as named:
            found = named.group
            _check_version(found, if_match)
            if found is None:
                created = _new_group(name, spec, stream.stream_id, self._clock.now_ms())
                await named.insert(created, shards)
                return created, True
            if create_only:
                raise PreconditionFailed(f"The group '{name.name}' exists already.")
            _refuse_change(found.spec, spec)
            if spec == found.spec:
                return found, False
            now_ms = max(self._clock.now_ms(), found.changed_at_ms)
            changed = replace(found, spec=spec, version=found.version + 1, changed_at_ms=now_ms)
            await named.update(changed)
            return changed, False

    async def get(self, name: GroupName) -> Group:
        """The group's definition."""
        return await self._offsets.find(name)

    async def delete(self, name: GroupName, *, if_match: int | None = None) -> None:
        """Delete the group, its offsets and bookmarks. Raises PreconditionFailed."""
        async with self._rows.named(name) as named:
            if named.group is None:
                raise GroupNotFound(f"There is no group '{name.name}'.")
            _check_version(named.group, if_match)
            await named.delete()

    async def list_groups(
        self,
        namespace: str,
        *,
        prefix: str = "",
        after: str = "",
        limit: int = limits.PAGE_ITEMS_DEFAULT,
    ) -> list[Group]:
        """Groups whose names begin with `prefix`, by name, strictly after `after`; at most 1000."""
        if not _could_name(after):
            raise InvalidCursor
        if not _could_name(prefix):
            return []
        limit = max(1, min(limit, limits.PAGE_ITEMS_MAX))
        return await self._rows.page(namespace, prefix, after, limit)

    async def of_stream(
        self, stream: Stream, limit: int = limits.PAGE_ITEMS_DEFAULT
    ) -> list[Group]:
        """Groups that read a stream, by name; at most 1000."""
        return await self._rows.of_stream(
            stream.stream_id, max(1, min(limit, limits.PAGE_ITEMS_MAX))
        )

    async def names(self, namespace: str, part: str = "") -> list[str]:
        """Names of groups that contain `part`, by name; LISTED_NAMES_MAX at most."""
        return await self._rows.names(namespace, part, limits.LISTED_NAMES_MAX)

    async def with_names(self, namespace: str, names: Sequence[str]) -> dict[str, Group]:
        """Those of the named groups that are there; PAGE_ITEMS_MAX names at most."""
        found = await self._rows.with_names(namespace, names[: limits.PAGE_ITEMS_MAX])
        return {group.name.name: group for group in found}

    async def describe(
        self, name: GroupName
    ) -> tuple[Group, tuple[Member, ...], dict[int, GroupShard]]:
        """The group, its members, and its shards, as they are at one time."""
        found = await self._rows.assignment(name)
        if found is None:
            raise GroupNotFound(f"There is no group '{name.name}'.")
        return found

    # Members

    async def join(
        self, name: GroupName, *, member_id: MemberId = "", instance_id: str = ""
    ) -> Membership:
        """Become a member, or start anew as one: what the former self of that name does counts no more.

        `instance_id` makes a static member of that name, which keeps its shards for a while when it is
        silent. Raises GroupFull, ValidationFailed.
        """
        return await self._members.join(name, member_id, instance_id)

    async def heartbeat(
        self,
        name: GroupName,
        member_id: MemberId,
        *,
        generation: int | None = None,
        owned: Collection[int] | None = None,
    ) -> Membership:
        """Say that a member is there; what it should read now, and give up.

        `generation`: the one it knows; `owned`: the shards it still holds, so that the others of those it was
        to give up are free. Raises MemberUnknown, or StaleGeneration when a later self of it has joined.
        """
        return await self._members.heartbeat(name, member_id, generation, owned)

    async def leave(self, name: GroupName, member_id: MemberId, *, for_good: bool = True) -> None:
        """Give up everything at once; a static member that does not go for good keeps its shards for a while.

        Raises MemberUnknown.
        """
        await self._members.leave(name, member_id, for_good=for_good)

    # Reading and committing

    async def fetch(
        self,
        name: GroupName,
        member_id: MemberId = "",
        *,
        positions: Mapping[int, int] | None = None,
        generation: int = 0,
        records_max: int = limits.READ_RECORDS_MAX,
        bytes_max: int = limits.READ_BYTES_MAX,
        wait_ms: int = 0,
        is_there: Callable[[], bool] = _always,
    ) -> Fetched:
        """Records of the member's shards, from where the group is; at the ends wait up to `wait_ms` for more.

        Joins when it has to, says that the member is there, and gives up what is to be given up: who asks for
        more holds on to nothing else. Repeated, it gives the same records until they are committed. `positions`
        of a `generation` read on from there, for as long as the shards stay the member's. `is_there` tells
        whether anybody still waits. In a simple group there are no members, and all shards are read.
        """
        return await self._fetching.fetch(
            name,
            member_id,
            positions or {},
            generation,
            records_max=records_max,
            bytes_max=bytes_max,
            wait_ms=wait_ms,
            is_there=is_there,
        )

    async def position(self, group: Group, place: Place) -> int:
        """Where the reading of a shard that the group assigned begins. Raises ShardNotFound, StreamNotFound."""
        return await self._positions.start(group, place.shard, place.committed)

    async def saw(self, group: Group, shard: int, tip: int) -> None:
        """A shard was read up to `tip`: a commit up to there need not ask whether the log goes so far."""
        self._offsets.saw(await self._offsets.stream(group), shard, tip)

    async def commit(self, name: GroupName, commits: Sequence[Commit]) -> list[CommitResult]:
        """Commit the next offset of each shard, or say why not, in their order.

        An offset that is behind what was committed before changes nothing, and is answered with where the group
        stands. Refused are: OffsetOutOfRange, ShardNotFound, StaleGeneration, MemberUnknown.
        """
        return await self._offsets.commit(name, commits)

    async def finish(self, group: Group, commit: Commit) -> bool:
        """Commit the end of a closed shard, which the caller has just seen: its children may begin. Whether it was
        taken."""
        return await self._offsets.finish(group, [commit])

    # Where it is

    async def reset(
        self, name: GroupName, spec: ResetSpec, *, dry_run: bool = False
    ) -> list[ShardReset]:
        """Take the group elsewhere, whether members are at work or not; what it does, or would do, by shard."""
        return await self._positions.reset(name, spec, dry_run=dry_run)

    async def save_bookmark(
        self, name: GroupName, bookmark: str, positions: Mapping[int, int] | None = None
    ) -> Bookmark:
        """Keep positions under a name: those given, or where the group is now."""
        return await self._positions.save(name, bookmark, positions)

    async def bookmarks(self, name: GroupName) -> list[Bookmark]:
        """The group's bookmarks, by name."""
        return await self._positions.bookmarks(name)

    async def delete_bookmark(self, name: GroupName, bookmark: str) -> None:
        """Forget a bookmark. Raises BookmarkNotFound."""
        await self._positions.forget(name, bookmark)

    async def lag(self, name: GroupName) -> list[ShardLag]:
        """How far the group is behind, by shard."""
        return await self._positions.lag(name)

    # For the sweep

    async def settle_all(self) -> int:
        """Look at every group whose assignment may have to change; gives how many there were.

        Nobody waits for it: joins and heartbeats find the same.
        """
        await self._changes.attend()
        for name, shard, committed in await self._rows.closed_and_committed():
            await self._finish_closed(name, shard, committed)
        names = await self._rows.to_settle(self._changes.now())
        for name in names:
            try:
                await self._changes.do(name, Change(nothing_else))
            except GroupNotFound:
                continue
        return len(names)

    async def drop_read(self, stream: Stream) -> None:
        """Forget what every group of the stream has committed; what is left for another time is little."""
        for shard, committed in await self._rows.read_by_all(stream.stream_id):
            with suppress(ShardNotFound, OffsetOutOfRange):  # expired, or a store that lost its end
                await self._streams.truncate(stream.name, shard, committed)

    async def _finish_closed(self, name: GroupName, shard: int, committed: int) -> None:
        try:
            group = await self._offsets.find(name)
            where = ReadFrom(offset=committed)
            read = await self._streams.read_shard(
                group.stream, shard, where, records_max=1, bytes_max=1
            )
        except MillstreamError:
            return  # expired, deleted, or away: the next look tells
        if read.ended and not read.records and read.next_offset == committed:
            await self._rows.finish(name, shard, committed)


def _new_group(name: GroupName, spec: GroupSpec, stream_id: str, now_ms: int) -> Group:
    """Its generations begin above those of any group that had the name before."""
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
                pointer, "This cannot change: make another group, or reset this one", "immutable"
            )


def _check_version(found: Group | None, if_match: int | None) -> None:
    if if_match is not None and (found is None or found.version != if_match):
        raise PreconditionFailed("The group does not have this version.")


def _could_name(part: str) -> bool:
    return part.isascii() and (part == "" or part.isprintable())
