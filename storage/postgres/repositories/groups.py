"""Repository of consumer groups: members, leases, and a copy of their committed offsets.

`lock_assignment` gives one process at a time the right to change a group's assignment. Heartbeats and copies of commits do not
need it: each is one statement that many callers share.
"""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from sqlalchemy import Row, Select, delete, distinct, func, insert, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain import limits
from storage.domain.errors import PreconditionFailed, StorageUnavailable
from storage.domain.groups.assignment import Member, MemberId
from storage.domain.groups.group import Bookmark, Group, MemberShard, group_not_found
from storage.domain.names import GroupName, LogId
from storage.postgres.definition_table import DefinitionTable, LockedDefinition
from storage.postgres.queries import query
from storage.postgres.repositories.group_locks import LockedGroup, hold
from storage.postgres.repositories.group_mapping import (
    GroupShard,
    OffsetCopy,
    copy_offsets,
    find_group,
    group_of,
    living,
    members_of,
    shards_of,
)
from storage.postgres.rows import rows_of
from storage.postgres.tables import (
    GroupBookmarkRow,
    GroupMemberRow,
    GroupRow,
    GroupShardRow,
    LogHoleRow,
)


class MemberHeartbeat(msgspec.Struct, frozen=True, gc=False):
    """Heartbeat of a member; `generation`: the one it knows, if it sends it."""

    group: GroupName
    member_id: MemberId
    generation: int | None = None


class HeartbeatResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a heartbeat.

    `counts`: it was accepted. `is_member`: the member exists, perhaps as a later instance. `unsettled`: the group should be
    settled, because its assignment may have to change.
    """

    group: Group
    counts: bool
    is_member: bool
    unsettled: bool
    assigned: tuple[MemberShard, ...]
    revoked: tuple[MemberShard, ...]


class LockedGroupName(LockedDefinition[Group]):
    """A group's name locked against writes by others, and the group of that name, if any."""

    async def insert_with_shards(
        self, group: Group, shards: Iterable[tuple[int, int | None, bool]]
    ) -> None:
        """Create the group, starting at these shards.

        Each is (number, committed offset or None, finished).
        """
        await self.session.execute(
            delete(GroupRow).where(  # of a deleted stream
                col(GroupRow.namespace) == group.name.namespace,
                col(GroupRow.name) == group.name.name,
            )
        )
        await self.insert(group)
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
        await self.session.execute(insert(GroupShardRow), rows)


class GroupRows(DefinitionTable[GroupName, Group, LockedGroupName]):
    """Groups of every namespace. `now_ms` None: the database's own clock.

    Every method raises StorageUnavailable or StorageBusy; one that changes something raises OutcomeUnknown
    when it may have, except where doing it twice is harmless.
    """

    kind = "group"
    table = GroupRow
    id = "group_id"

    # Definitions

    def select(self) -> Select[Any]:
        return living()

    def definition_of(self, row: Row[Any]) -> Group:
        return group_of(row)

    def values(self, definition: Group) -> dict[str, Any]:
        return super().values(definition) | {
            "stream_id": definition.stream_id,
            "kind": definition.spec.kind.value,
            "generation": definition.generation,
            "lineage_mark": 0,
        }

    def changes(self, definition: Group) -> dict[str, Any]:
        spec = definition.spec
        timeouts = {"session_ms": spec.session_timeout_ms, "static_ms": spec.static_timeout_ms}
        return super().changes(definition) | timeouts

    def locked(
        self, session: AsyncSession, name: GroupName, row: Row[Any] | None
    ) -> LockedGroupName:
        return LockedGroupName(session, self, name, row)

    async def of_stream(self, stream_id: LogId, limit: int) -> list[Group]:
        """Return the first `limit` groups that read a stream, by name."""
        statement = living().where(col(GroupRow.stream_id) == stream_id)
        return await self._read(statement.order_by(col(GroupRow.name)).limit(limit))

    # Assignment

    @asynccontextmanager
    async def lock_assignment(
        self, name: GroupName, now_ms: int | None
    ) -> AsyncGenerator[LockedGroup | None]:
        """Lock the group until the block ends, which commits unless it raises.

        Yields None when there is no such group.
        """
        async with self._database.writing() as session:
            parameters = {"namespace": name.namespace, "name": name.name, "now_ms": now_ms}
            row = (await session.execute(query("hold_group"), parameters)).one_or_none()
            yield None if row is None else await hold(session, row)

    async def assignment(
        self, name: GroupName
    ) -> tuple[Group, tuple[Member, ...], dict[int, GroupShard]] | None:
        """Return a consistent view of the group with its members and shards, or None."""
        async with self._database.reading() as session:
            await session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
            group = await find_group(session, name)
            if group is None:
                return None
            members = await members_of(session, group.group_id, locked=False)
            return group, members, await shards_of(session, group.group_id, locked=False)

    async def describe(
        self, name: GroupName
    ) -> tuple[Group, tuple[Member, ...], dict[int, GroupShard]]:
        """Return the result of `assignment`. Raises GroupNotFound."""
        assignment = await self.assignment(name)
        if assignment is None:
            raise group_not_found(name)
        return assignment

    async def heartbeat(
        self, beats: Sequence[MemberHeartbeat], now_ms: int | None
    ) -> list[HeartbeatResult | None]:
        """Record heartbeats; None for a group that does not exist."""
        parameters = {
            **_group_columns([beat.group for beat in beats]),
            "member_ids": [beat.member_id for beat in beats],
            "generations": [beat.generation for beat in beats],
            "now_ms": now_ms,
        }
        async with self._database.autocommitting() as session:
            rows = await session.execute(query("beat_members"), parameters)
            results = {row.nth: _heartbeat_result(row) for row in rows}
        return [results.get(nth) for nth in range(len(beats))]

    async def copy_offsets(self, copies: Sequence[OffsetCopy]) -> None:
        """Copy committed offsets from the hot store, each (group, shard) at most once."""
        async with self._database.autocommitting() as session:
            await copy_offsets(session, copies)

    async def store_starts(self, group: Group, starts: Mapping[int, int]) -> dict[int, int]:
        """Store where the group begins to read each shard, and return its positions.

        A start that is stored already stays; a shard that `starts` lacks is younger, and begins at 0.
        """
        parameters = {
            "group_id": group.group_id,
            "shards": list(starts),
            "starts": list(starts.values()),
        }
        async with self._database.writing(unknown=StorageUnavailable) as session:
            await session.execute(query("store_group_starts"), parameters)
            shards = await shards_of(session, group.group_id, locked=False)
        return {
            index: shard.position for index, shard in shards.items() if shard.position is not None
        }

    # Queries of the sweeper

    async def record_database_heartbeat(self, outage_ms: int, now_ms: int | None) -> None:
        """Record that the database is reachable, at most once a second.

        After an outage also since when it is again.
        """
        parameters = {
            "outage_ms": outage_ms,
            "every_ms": limits.DATABASE_HEARTBEAT_MS,
            "now_ms": now_ms,
        }
        async with self._database.autocommitting() as session:
            await session.execute(query("attend"), parameters)

    async def to_settle(self, now_ms: int | None) -> list[GroupName]:
        """Return the groups whose assignment may have to change."""
        async with self._database.reading() as session:
            rows = await session.execute(query("groups_to_settle"), {"now_ms": now_ms})
            return [GroupName(row.name, row.namespace) for row in rows]

    async def exist(self) -> bool:
        """Return whether there are any groups."""
        async with self._database.reading() as session:
            return await session.scalar(select(col(GroupRow.group_id)).limit(1)) is not None

    async def count_with_members(self) -> int:
        """Return the number of groups that have members."""
        async with self._database.reading() as session:
            count = func.count(distinct(col(GroupMemberRow.group_id)))
            return int(await session.scalar(select(count)) or 0)

    async def closed_and_committed(self) -> list[tuple[GroupName, int, int]]:
        """Return (group, shard, committed offset) of closed shards that a group has not finished."""
        async with self._database.reading() as session:
            rows = await session.execute(query("closed_and_committed"))
            return [(GroupName(row.name, row.namespace), row.shard, row.committed) for row in rows]

    async def finish(self, name: GroupName, shard: int, committed: int) -> None:
        """Mark the shard as read to its end by the group, if its committed offset is unchanged."""
        parameters = {
            "namespace": name.namespace,
            "name": name.name,
            "shard": shard,
            "committed": committed,
        }
        async with self._database.autocommitting() as session:
            await session.execute(query("finish_shard"), parameters)

    async def read_by_all(self, stream_id: LogId) -> list[tuple[int, int]]:
        """Return (shard, offset) below which every group of the stream has committed."""
        async with self._database.reading() as session:
            rows = await session.execute(query("read_by_all"), {"stream_id": stream_id})
            return [(row.shard, row.committed) for row in rows]

    # Related data

    async def holes(self, log_ids: Sequence[LogId]) -> dict[LogId, list[tuple[int, int]]]:
        """Return the holes (first, next) of each log, in order."""
        statement = select(
            col(LogHoleRow.log_id), col(LogHoleRow.first), col(LogHoleRow.next)
        ).where(col(LogHoleRow.log_id).in_(log_ids))
        holes_by_log: dict[LogId, list[tuple[int, int]]] = {log_id: [] for log_id in log_ids}
        async with self._database.reading() as session:
            for row in await session.execute(statement.order_by(col(LogHoleRow.first))):
                holes_by_log[row.log_id].append((row.first, row.next))
        return holes_by_log

    async def bookmarks(self, group: Group, name: str | None = None) -> list[Bookmark]:
        """Return the group's bookmarks by name, or the one of that name."""
        statement = rows_of(GroupBookmarkRow).where(
            col(GroupBookmarkRow.group_id) == group.group_id
        )
        if name is not None:
            statement = statement.where(col(GroupBookmarkRow.name) == name)
        async with self._database.reading() as session:
            rows = await session.execute(statement.order_by(col(GroupBookmarkRow.name)))
            return [_bookmark(row) for row in rows]

    async def put_bookmark(self, group: Group, bookmark: Bookmark, *, create_only: bool) -> bool:
        """Store the bookmark, replacing one of that name. False when the group was deleted.

        Raises PreconditionFailed if it exists and `create_only` is set.
        """
        values = {
            "positions": {str(shard): offset for shard, offset in bookmark.positions.items()},
            "created_at_ms": bookmark.created_at_ms,
        }
        key = {"group_id": group.group_id, "name": bookmark.name}
        new = upsert(GroupBookmarkRow).values(**key, **values)
        statement = (
            new.on_conflict_do_nothing(index_elements=list(key))
            if create_only
            else new.on_conflict_do_update(index_elements=list(key), set_=values)
        )
        try:
            async with self._database.writing() as session:
                stored = statement.returning(col(GroupBookmarkRow.name))
                if await session.scalar(stored) is None:
                    raise PreconditionFailed("The bookmark exists.")
        except IntegrityError:
            return False
        return True

    async def delete_bookmark(self, group: Group, name: str) -> bool:
        """Delete a bookmark; return whether it existed."""
        statement = delete(GroupBookmarkRow).where(
            col(GroupBookmarkRow.group_id) == group.group_id, col(GroupBookmarkRow.name) == name
        )
        async with self._database.writing() as session:
            return bool((await session.execute(statement)).rowcount)  # type: ignore[attr-defined]


def _group_columns(names: Sequence[GroupName]) -> dict[str, list[Any]]:
    return {
        "nths": list(range(len(names))),
        "namespaces": [name.namespace for name in names],
        "names": [name.name for name in names],
    }


def _heartbeat_result(row: Row[Any]) -> HeartbeatResult:
    shards = [
        (MemberShard(shard, generation, committed, start), revoked)
        for shard, generation, committed, start, revoked in row.places or ()
    ]
    return HeartbeatResult(
        group=group_of(row),
        counts=row.beaten,
        is_member=row.known,
        unsettled=row.unsettled,
        assigned=tuple(shard for shard, revoked in shards if not revoked),
        revoked=tuple(shard for shard, revoked in shards if revoked),
    )


def _bookmark(row: Row[Any]) -> Bookmark:
    return Bookmark(
        name=row.name,
        positions={int(shard): offset for shard, offset in row.positions.items()},
        created_at_ms=row.created_at_ms,
    )
