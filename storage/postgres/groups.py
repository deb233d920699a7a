"""Consumer groups as Postgres holds them, which alone decides about them.

`held` gives one process at a time the right to change a group's assignment. Heartbeats and commits do not ask for
it: each is one statement that many callers share, and says what it found.
"""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Row, delete, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain import limits
from storage.domain.assignment import Assignment, Lease, Link, Member, MemberId
from storage.domain.errors import StorageUnavailable
from storage.domain.groups import Bookmark, Commit, Group, GroupSpec, Place
from storage.domain.names import GroupName, LogId
from storage.postgres.database import Database
from storage.postgres.queries import query
from storage.postgres.tables import (
    AttendanceRow,
    GroupBookmarkRow,
    GroupMemberRow,
    GroupRow,
    GroupShardRow,
    LogHoleRow,
    ShardRow,
    StreamRow,
)

T = TypeVar("T")

_AFTER_EVERY_CHARACTER = "\x7f"  # names are printable ASCII


class Beat(msgspec.Struct, frozen=True, gc=False):
    """A member says that it is there; `generation`: the one it knows, if it says so."""

    group: GroupName
    member_id: MemberId
    generation: int | None = None


class Beaten(msgspec.Struct, frozen=True, kw_only=True):
    """What a heartbeat found. `counts`: it was heard. `known`: there is such a member, perhaps a later self.

    `unsettled`: somebody should look at the group, since its assignment may have to change.
    """

    group: Group
    counts: bool
    known: bool
    unsettled: bool
    places: tuple[Place, ...]
    revoked: tuple[Place, ...]


class AskedCommit(msgspec.Struct, frozen=True, gc=False):
    """A commit to a group of this stream. `ends`: the shard is closed, and this offset is its end."""

    group: GroupName
    stream_id: LogId
    commit: Commit
    ends: bool


class MovedTo(msgspec.Struct, frozen=True, kw_only=True):
    """What a commit found. `offset`: where the group stands now; None when it was refused."""

    offset: int | None
    stream_id: LogId
    simple: bool
    has_shard: bool
    has_member: bool


class GroupShard(msgspec.Struct, frozen=True, kw_only=True):
    """A shard as a group has it."""

    lease: Lease
    committed: int | None


class HeldGroup:
    """A group that nobody else can change, as it is now."""

    def __init__(
        self,
        session: AsyncSession,
        group: Group,
        now_ms: int,
        back_since_ms: int,
        members: tuple[Member, ...],
        shards: Mapping[int, GroupShard],
        lineage: tuple[Link, ...],
        mark: int,
    ) -> None:
        self._session = session
        self.group = group
        self.now_ms = now_ms
        self.back_since_ms = back_since_ms
        self.lineage = lineage
        self._shards = dict(shards)
        self._stored = self.assignment = Assignment(
            group.generation, members, tuple(one.lease for one in shards.values())
        )
        self._mark = mark

    @property
    def committed(self) -> Mapping[int, int | None]:
        """The next offset of each shard that the group has; None before its first commit."""
        return {shard: found.committed for shard, found in self._shards.items()}

    def places(self, member_id: MemberId, *, revoked: bool) -> tuple[Place, ...]:
        """The member's shards that are to be given up, or the others."""
        return tuple(
            Place(lease.shard, lease.generation, self.committed.get(lease.shard))
            for lease in self.assignment.leases
            if lease.owner == member_id and (lease.revoke_by_ms is not None) == revoked
        )

    async def store(self, after: Assignment) -> None:
        """Make `after` the group's assignment."""
        group_id = self.group.group_id
        await _store_members(self._session, group_id, self._stored.members, after.members)
        await _store_leases(self._session, group_id, self._stored.leases, after.leases)
        await self._session.execute(
            update(GroupRow)
            .where(col(GroupRow.group_id) == group_id)
            .values(generation=after.generation, lineage_mark=self._mark)
        )
        self._stored = self.assignment = after
        self._shards = {
            lease.shard: GroupShard(lease=lease, committed=self.committed.get(lease.shard))
            for lease in after.leases
        }
        self.group = msgspec.structs.replace(self.group, generation=after.generation)

    async def move(self, offsets: Mapping[int, int]) -> None:
        """Set the committed offsets of shards, forward or back: a reset."""
        for shard, offset in sorted(offsets.items()):
            await self._session.execute(
                update(GroupShardRow)
                .where(
                    col(GroupShardRow.group_id) == self.group.group_id,
                    col(GroupShardRow.shard) == shard,
                )
                .values(committed=offset, committed_at_ms=self.now_ms)
            )
            held = self._shards[shard]
            self._shards[shard] = msgspec.structs.replace(held, committed=offset)


class Named:
    """A group's name that nobody else can write to, and the group of that name, if there is one."""

    def __init__(self, session: AsyncSession, name: GroupName, group: Group | None) -> None:
        self._session = session
        self._name = name
        self.group = group

    async def insert(self, group: Group, shards: Iterable[tuple[int, int | None, bool]]) -> None:
        """Give the name its group, which begins at these shards: (number, committed offset or None, finished)."""
        await self._session.execute(
            delete(GroupRow).where(  # of a stream that is gone
                col(GroupRow.namespace) == self._name.namespace,
                col(GroupRow.name) == self._name.name,
            )
        )
        await self._session.execute(insert(GroupRow).values(**_group_values(group), lineage_mark=0))
        rows = [
            {
                "group_id": group.group_id,
                "shard": shard,
                "generation": group.generation,
                "committed": committed,
                "committed_at_ms": None,
                "finished": finished,
            }
            for shard, committed, finished in shards
        ]
        await self._session.execute(insert(GroupShardRow), rows)

    async def update(self, group: Group) -> None:
        """Store a later version."""
        values = _group_values(group)
        del values["group_id"], values["generation"]
        await self._session.execute(
            update(GroupRow).where(col(GroupRow.group_id) == group.group_id).values(**values)
        )

    async def delete(self) -> None:
        """Free the name; everything that is the group's goes."""
        if self.group is not None:
            await self._session.execute(
                delete(GroupRow).where(col(GroupRow.group_id) == self.group.group_id)
            )


class GroupRows:
    """The groups of every namespace. `now_ms` None: the database's own clock.

    Every method raises StorageUnavailable or StorageBusy; one that changes something raises OutcomeUnknown
    when it may have, except where doing it twice is harmless.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    # Definitions

    @asynccontextmanager
    async def named(self, name: GroupName) -> AsyncGenerator[Named]:
        """Hold the name until the block ends, which commits unless it raises."""
        async with self._database.writing() as session:
            await session.execute(query("hold_name"), {"name": f"group:{name}"})
            yield Named(session, name, await _find(session, name))

    async def find(self, name: GroupName) -> Group | None:
        """The group, or None."""
        async with self._database.reading() as session:
            return await _find(session, name)

    async def page(self, namespace: str, prefix: str, after: str, limit: int) -> list[Group]:
        """The first `limit` of a namespace with that prefix, by name, strictly after `after`."""
        name = col(GroupRow.name)
        wanted = _living().where(
            col(GroupRow.namespace) == namespace,
            name > after,
            name >= prefix,
            name < prefix + _AFTER_EVERY_CHARACTER,
        )
        async with self._database.reading() as session:
            rows = await session.execute(wanted.order_by(name).limit(limit))
            return [group_of(row) for row in rows]

    # Assignment

    @asynccontextmanager
    async def held(self, name: GroupName, now_ms: int | None) -> AsyncGenerator[HeldGroup | None]:
        """Hold the group until the block ends, which commits unless it raises; None when there is none."""
        async with self._database.writing() as session:
            asked = {"namespace": name.namespace, "name": name.name, "now_ms": now_ms}
            row = (await session.execute(query("hold_group"), asked)).one_or_none()
            yield None if row is None else await _hold(session, row)

    async def assignment(
        self, name: GroupName
    ) -> tuple[Group, tuple[Member, ...], dict[int, GroupShard]] | None:
        """The group with its members and shards, as they were at one time; None when there is none."""
        async with self._database.reading() as session:
            await session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
            group = await _find(session, name)
            if group is None:
                return None
            members = await _members(session, group.group_id, locked=False)
            return group, members, await _shards(session, group.group_id, locked=False)

    async def beat(self, asked: Sequence[Beat], now_ms: int | None) -> list[Beaten | None]:
        """Hear the heartbeats; None for a group that is not there."""
        parameters = {
            "nths": list(range(len(asked))),
            "namespaces": [beat.group.namespace for beat in asked],
            "names": [beat.group.name for beat in asked],
            "member_ids": [beat.member_id for beat in asked],
            "generations": [beat.generation for beat in asked],
            "now_ms": now_ms,
        }
        async with self._database.writing(unknown=StorageUnavailable) as session:
            rows = await session.execute(query("beat_members"), parameters)
            found = {row.nth: _beaten(row) for row in rows}
        return [found.get(nth) for nth in range(len(asked))]

    async def commit(
        self, asked: Sequence[AskedCommit], now_ms: int | None
    ) -> list[MovedTo | None]:
        """Commit offsets, each (group, shard) at most once; None for a group that is not there."""
        commits = [one.commit for one in asked]
        parameters = {
            "nths": list(range(len(asked))),
            "namespaces": [one.group.namespace for one in asked],
            "names": [one.group.name for one in asked],
            "stream_ids": [one.stream_id for one in asked],
            "shards": [commit.shard for commit in commits],
            "nexts": [commit.offset for commit in commits],
            "member_ids": [commit.member_id for commit in commits],
            "generations": [commit.generation for commit in commits],
            "ends": [one.ends for one in asked],
            "now_ms": now_ms,
        }
        async with self._database.writing() as session:
            rows = await session.execute(query("commit_offsets"), parameters)
            found = {row.nth: _moved_to(row) for row in rows}
        return [found.get(nth) for nth in range(len(asked))]

    # What the sweep asks

    async def attend(self, outage_ms: int, now_ms: int | None) -> None:
        """Note that the database is there, at most once a second; after an outage, since when it is again."""
        asked = {"outage_ms": outage_ms, "every_ms": limits.ATTENDANCE_MS, "now_ms": now_ms}
        async with self._database.writing(unknown=StorageUnavailable) as session:
            await session.execute(query("attend"), asked)

    async def to_settle(self, now_ms: int | None) -> list[GroupName]:
        """Groups whose assignment may have to change."""
        async with self._database.reading() as session:
            rows = await session.execute(query("groups_to_settle"), {"now_ms": now_ms})
            return [GroupName(row.name, row.namespace) for row in rows]

    async def closed_and_committed(self) -> list[tuple[GroupName, int, int]]:
        """(group, shard, committed offset) of closed shards that a group has not finished."""
        async with self._database.reading() as session:
            rows = await session.execute(query("closed_and_committed"))
            return [(GroupName(row.name, row.namespace), row.shard, row.committed) for row in rows]

    async def finish(self, name: GroupName, shard: int, committed: int) -> None:
        """The group has read the shard to its end, if that is still what it has committed."""
        asked = {
            "namespace": name.namespace,
            "name": name.name,
            "shard": shard,
            "committed": committed,
        }
        async with self._database.writing(unknown=StorageUnavailable) as session:
            await session.execute(query("finish_shard"), asked)

    # What is kept beside

    async def holes(self, log_ids: Sequence[LogId]) -> dict[LogId, list[tuple[int, int]]]:
        """The holes (first, next) of each log, in order."""
        wanted = select(col(LogHoleRow.log_id), col(LogHoleRow.first), col(LogHoleRow.next)).where(
            col(LogHoleRow.log_id).in_(log_ids)
        )
        found: dict[LogId, list[tuple[int, int]]] = {log_id: [] for log_id in log_ids}
        async with self._database.reading() as session:
            for row in await session.execute(wanted.order_by(col(LogHoleRow.first))):
                found[row.log_id].append((row.first, row.next))
        return found

    async def bookmarks(self, group: Group, name: str | None = None) -> list[Bookmark]:
        """The group's bookmarks by name, or the one of that name."""
        wanted = select(GroupBookmarkRow.__table__).where(  # type: ignore[attr-defined]
            col(GroupBookmarkRow.group_id) == group.group_id
        )
        if name is not None:
            wanted = wanted.where(col(GroupBookmarkRow.name) == name)
        async with self._database.reading() as session:
            rows = await session.execute(wanted.order_by(col(GroupBookmarkRow.name)))
            return [_bookmark(row) for row in rows]

    async def put_bookmark(self, group: Group, bookmark: Bookmark) -> bool:
        """Keep the bookmark, in place of one of that name. False when the group is gone."""
        values = {
            "positions": {str(shard): offset for shard, offset in bookmark.positions.items()},
            "created_at_ms": bookmark.created_at_ms,
        }
        place = {"group_id": group.group_id, "name": bookmark.name}
        statement = upsert(GroupBookmarkRow).values(**place, **values)
        try:
            async with self._database.writing() as session:
                await session.execute(
                    statement.on_conflict_do_update(index_elements=list(place), set_=values)
                )
        except IntegrityError:
            return False
        return True

    async def delete_bookmark(self, group: Group, name: str) -> bool:
        """Whether there was such a bookmark."""
        gone = delete(GroupBookmarkRow).where(
            col(GroupBookmarkRow.group_id) == group.group_id, col(GroupBookmarkRow.name) == name
        )
        async with self._database.writing() as session:
            return bool((await session.execute(gone)).rowcount)  # type: ignore[attr-defined]


def _living() -> Any:
    """Groups whose stream is there."""
    return (
        select(GroupRow.__table__)  # type: ignore[attr-defined]
        .join(StreamRow, col(StreamRow.stream_id) == col(GroupRow.stream_id))
        .where(col(StreamRow.deleted_at_ms).is_(None))
    )


async def _find(session: AsyncSession, name: GroupName) -> Group | None:
    wanted = _living().where(
        col(GroupRow.namespace) == name.namespace, col(GroupRow.name) == name.name
    )
    row = (await session.execute(wanted)).one_or_none()
    return None if row is None else group_of(row)


def group_of(row: Row[Any]) -> Group:
    """The group of a row that has all its columns."""
    return Group(
        name=GroupName(row.name, row.namespace),
        group_id=row.group_id,
        stream_id=row.stream_id,
        spec=msgspec.convert(row.spec, GroupSpec),
        version=row.version,
        generation=row.generation,
        created_at_ms=row.created_at_ms,
        changed_at_ms=row.changed_at_ms,
    )


def _group_values(group: Group) -> dict[str, Any]:
    return {
        "group_id": group.group_id,
        "namespace": group.name.namespace,
        "name": group.name.name,
        "stream_id": group.stream_id,
        "kind": group.spec.kind.value,
        "spec": msgspec.to_builtins(group.spec),
        "version": group.version,
        "generation": group.generation,
        "session_ms": group.spec.session_timeout_ms,
        "static_ms": group.spec.static_timeout_ms,
        "created_at_ms": group.created_at_ms,
        "changed_at_ms": group.changed_at_ms,
    }


async def _hold(session: AsyncSession, row: Row[Any]) -> HeldGroup:
    group = group_of(row)
    members = await _members(session, group.group_id, locked=True)
    shards = await _shards(session, group.group_id, locked=True)
    lineage, mark = await _lineage(session, group.stream_id)
    back_since = select(col(AttendanceRow.back_since_ms))
    back_since_ms = (await session.execute(back_since)).scalar_one()
    return HeldGroup(session, group, row.now_ms, back_since_ms, members, shards, lineage, mark)


async def _members(session: AsyncSession, group_id: str, *, locked: bool) -> tuple[Member, ...]:
    wanted = (
        select(GroupMemberRow.__table__)  # type: ignore[attr-defined]
        .where(col(GroupMemberRow.group_id) == group_id)
        .order_by(col(GroupMemberRow.member_id))
    )
    rows = await session.execute(wanted.with_for_update() if locked else wanted)
    return tuple(msgspec.convert(_without_group(row), Member) for row in rows)


async def _shards(session: AsyncSession, group_id: str, *, locked: bool) -> dict[int, GroupShard]:
    wanted = (
        select(GroupShardRow.__table__)  # type: ignore[attr-defined]
        .where(col(GroupShardRow.group_id) == group_id)
        .order_by(col(GroupShardRow.shard))
    )
    rows = await session.execute(wanted.with_for_update() if locked else wanted)
    return {
        row.shard: GroupShard(
            lease=msgspec.convert(_without_group(row), Lease), committed=row.committed
        )
        for row in rows
    }


def _without_group(row: Row[Any]) -> dict[str, Any]:
    return {name: value for name, value in row._mapping.items() if name != "group_id"}


async def _lineage(session: AsyncSession, stream_id: LogId) -> tuple[tuple[Link, ...], int]:
    """The shards that have not expired, and the mark of what is known, as `beat_members` has it."""
    columns: tuple[Any, ...] = (
        col(ShardRow.index).label("shard"),
        col(ShardRow.parents),
        col(ShardRow.closed_at_ms),
        col(ShardRow.expired_at_ms),
    )
    wanted = select(*columns).where(col(ShardRow.stream_id) == stream_id)
    rows = list(await session.execute(wanted.order_by(col(ShardRow.index))))
    links = tuple(Link(row.shard, tuple(row.parents)) for row in rows if row.expired_at_ms is None)
    mark = max(row.shard for row in rows) + max(row.closed_at_ms or 0 for row in rows)
    return links, mark


async def _store_members(
    session: AsyncSession, group_id: str, before: Sequence[Member], after: Sequence[Member]
) -> None:
    stored = {member.member_id: member for member in before}
    wanted = {member.member_id: member for member in after}
    gone = [name for name in stored if name not in wanted]
    if gone:
        await session.execute(
            delete(GroupMemberRow).where(
                col(GroupMemberRow.group_id) == group_id, col(GroupMemberRow.member_id).in_(gone)
            )
        )
    changed = [member for name, member in wanted.items() if stored.get(name) != member]
    rows = [{"group_id": group_id, **msgspec.structs.asdict(member)} for member in changed]
    await _upsert(session, GroupMemberRow, ("group_id", "member_id"), rows)


async def _store_leases(
    session: AsyncSession, group_id: str, before: Sequence[Lease], after: Sequence[Lease]
) -> None:
    stored = {lease.shard: lease for lease in before}
    wanted = {lease.shard for lease in after}
    gone = [shard for shard in stored if shard not in wanted]
    if gone:
        await session.execute(
            delete(GroupShardRow).where(
                col(GroupShardRow.group_id) == group_id, col(GroupShardRow.shard).in_(gone)
            )
        )
    changed = [lease for lease in after if stored.get(lease.shard) != lease]
    rows = [{"group_id": group_id, **msgspec.structs.asdict(lease)} for lease in changed]
    await _upsert(session, GroupShardRow, ("group_id", "shard"), rows)


async def _upsert(
    session: AsyncSession, table: Any, key: tuple[str, ...], rows: list[dict[str, Any]]
) -> None:
    if not rows:
        return
    statement = upsert(table).values(rows)
    others = {name: statement.excluded[name] for name in rows[0] if name not in key}
    await session.execute(statement.on_conflict_do_update(index_elements=list(key), set_=others))


def _beaten(row: Row[Any]) -> Beaten:
    places = [
        (Place(shard, generation, committed), revoked)
        for shard, generation, committed, revoked in row.places or ()
    ]
    return Beaten(
        group=group_of(row),
        counts=row.beaten,
        known=row.known,
        unsettled=row.unsettled,
        places=tuple(place for place, revoked in places if not revoked),
        revoked=tuple(place for place, revoked in places if revoked),
    )


def _moved_to(row: Row[Any]) -> MovedTo:
    return MovedTo(
        offset=row.committed,
        stream_id=row.stream_id,
        simple=row.kind == "simple",
        has_shard=row.has_shard,
        has_member=row.has_member,
    )


def _bookmark(row: Row[Any]) -> Bookmark:
    return Bookmark(
        name=row.name,
        positions={int(shard): offset for shard, offset in row.positions.items()},
        created_at_ms=row.created_at_ms,
    )
