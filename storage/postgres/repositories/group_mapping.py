"""Mapping between rows of groups, their members and shards, and domain values."""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Row, Select, delete, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain.groups.assignment import Link, Member, ShardLease
from storage.domain.groups.group import Group, GroupSpec, MemberShard
from storage.domain.names import GroupName, LogId
from storage.postgres.queries import query
from storage.postgres.rows import rows_of, struct_of
from storage.postgres.tables import GroupMemberRow, GroupRow, GroupShardRow, ShardRow, StreamRow


class GroupShard(msgspec.Struct, frozen=True, kw_only=True):
    """A shard of a group. `committed_at_ms`: its last commit there, if requested."""

    lease: ShardLease
    committed: int | None
    committed_at_ms: int | None = None
    start: int | None = None

    @property
    def position(self) -> int | None:
        """Next offset to read; None before the shard is first read."""
        return self.start if self.committed is None else self.committed


class OffsetCopy(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An offset that the hot store has committed, for its row.

    It was accepted under a lease of that generation. `ends`: the shard is closed, and this is its end.
    """

    group_id: str
    shard: int
    lease_generation: int
    offset: int
    committed_at_ms: int
    ends: bool = False


def member_shard(shard: GroupShard) -> MemberShard:
    """Return a shard as its owner sees it."""
    return MemberShard(shard.lease.shard, shard.lease.generation, shard.committed, shard.start)


def living() -> Select[Any]:
    """Select the groups whose stream exists."""
    return (
        rows_of(GroupRow)
        .join(StreamRow, col(StreamRow.stream_id) == col(GroupRow.stream_id))
        .where(col(StreamRow.deleted_at_ms).is_(None))
    )


async def find_group(session: AsyncSession, name: GroupName) -> Group | None:
    statement = living().where(
        col(GroupRow.namespace) == name.namespace, col(GroupRow.name) == name.name
    )
    row = (await session.execute(statement)).one_or_none()
    return None if row is None else group_of(row)


def group_of(row: Row[Any]) -> Group:
    """Return the group of a row that has all its columns."""
    name, spec = GroupName(row.name, row.namespace), msgspec.convert(row.spec, GroupSpec)
    return struct_of(Group, row, name=name, spec=spec)


async def members_of(session: AsyncSession, group_id: str, *, locked: bool) -> tuple[Member, ...]:
    statement = (
        rows_of(GroupMemberRow)
        .where(col(GroupMemberRow.group_id) == group_id)
        .order_by(col(GroupMemberRow.member_id))
    )
    rows = await session.execute(statement.with_for_update() if locked else statement)
    return tuple(msgspec.convert(_without_group(row), Member) for row in rows)


async def shards_of(session: AsyncSession, group_id: str, *, locked: bool) -> dict[int, GroupShard]:
    statement = (
        rows_of(GroupShardRow)
        .where(col(GroupShardRow.group_id) == group_id)
        .order_by(col(GroupShardRow.shard))
    )
    rows = await session.execute(statement.with_for_update() if locked else statement)
    return {
        row.shard: GroupShard(
            lease=msgspec.convert(_without_group(row), ShardLease),
            committed=row.committed,
            committed_at_ms=row.committed_at_ms,
            start=row.start,
        )
        for row in rows
    }


def _without_group(row: Row[Any]) -> dict[str, Any]:
    return {name: value for name, value in row._mapping.items() if name != "group_id"}


async def copy_offsets(session: AsyncSession, copies: Sequence[OffsetCopy]) -> None:
    """Copy offsets to rows that have the same lease and a lower offset, each row once."""
    parameters = {
        "group_ids": [copy.group_id for copy in copies],
        "shards": [copy.shard for copy in copies],
        "generations": [copy.lease_generation for copy in copies],
        "nexts": [copy.offset for copy in copies],
        "times_ms": [copy.committed_at_ms for copy in copies],
        "ends": [copy.ends for copy in copies],
    }
    await session.execute(query("copy_offsets"), parameters)


async def lineage_of(session: AsyncSession, stream_id: LogId) -> tuple[tuple[Link, ...], int]:
    """Return the shards that have not expired, and the lineage mark used by `beat_members`."""
    columns: tuple[Any, ...] = (
        col(ShardRow.index).label("shard"),
        col(ShardRow.parents),
        col(ShardRow.closed_at_ms),
        col(ShardRow.expired_at_ms),
    )
    statement = select(*columns).where(col(ShardRow.stream_id) == stream_id)
    rows = list(await session.execute(statement.order_by(col(ShardRow.index))))
    links = tuple(Link(row.shard, tuple(row.parents)) for row in rows if row.expired_at_ms is None)
    mark = max(row.shard for row in rows) + max(row.closed_at_ms or 0 for row in rows)
    return links, mark


async def store_members(
    session: AsyncSession, group_id: str, before: Sequence[Member], after: Sequence[Member]
) -> None:
    stored = {member.member_id: member for member in before}
    current = {member.member_id: member for member in after}
    gone = [name for name in stored if name not in current]
    if gone:
        await session.execute(
            delete(GroupMemberRow).where(
                col(GroupMemberRow.group_id) == group_id, col(GroupMemberRow.member_id).in_(gone)
            )
        )
    changed = [member for name, member in current.items() if stored.get(name) != member]
    rows = [{"group_id": group_id, **msgspec.to_builtins(member)} for member in changed]
    await _upsert(session, GroupMemberRow, ("group_id", "member_id"), rows)


async def store_leases(
    session: AsyncSession, group_id: str, before: Sequence[ShardLease], after: Sequence[ShardLease]
) -> None:
    stored = {lease.shard: lease for lease in before}
    current = {lease.shard for lease in after}
    gone = [shard for shard in stored if shard not in current]
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
