"""Row locks on groups: one process at a time changes an assignment."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import msgspec
from sqlalchemy import Row, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain.groups.assignment import Assignment, Link, MemberId, ShardLease
from storage.domain.groups.group import Group, MemberShard
from storage.postgres.repositories.group_mapping import (
    GroupShard,
    OffsetCopy,
    copy_offsets,
    group_of,
    lineage_of,
    member_shard,
    members_of,
    shards_of,
    store_leases,
    store_members,
)
from storage.postgres.tables import AttendanceRow, GroupRow, GroupShardRow

_NEW = GroupShard(lease=ShardLease(shard=-1), committed=None)


@attrs.define(eq=False, kw_only=True)
class LockedGroup:
    """A group locked against changes by others, in its present state."""

    _session: AsyncSession
    group: Group
    now_ms: int
    back_since_ms: int
    lineage: tuple[Link, ...]
    assignment: Assignment
    _shards: dict[int, GroupShard]
    _mark: int

    @property
    def committed(self) -> Mapping[int, int | None]:
        """Next offset of each shard that the group has; None before its first commit."""
        return {shard: found.committed for shard, found in self._shards.items()}

    @property
    def shards(self) -> Mapping[int, GroupShard]:
        """The group's shards."""
        return self._shards

    def assignments(self, member_id: MemberId, *, revoked: bool) -> tuple[MemberShard, ...]:
        """Return the member's shards that are being revoked, or the others."""
        return tuple(
            member_shard(shard)
            for shard in self._shards.values()
            if shard.lease.owner == member_id and (shard.lease.revoke_by_ms is not None) == revoked
        )

    async def take(self, copies: Sequence[OffsetCopy]) -> None:
        """Adopt commits that the hot store has and the rows have not, before leases change."""
        if not copies:
            return
        await copy_offsets(self._session, copies)
        self._shards = await shards_of(self._session, self.group.group_id, locked=False)

    async def store(self, after: Assignment) -> None:
        """Store `after` as the group's assignment."""
        group_id = self.group.group_id
        await store_members(self._session, group_id, self.assignment.members, after.members)
        await store_leases(self._session, group_id, self.assignment.leases, after.leases)
        await self._session.execute(
            update(GroupRow)
            .where(col(GroupRow.group_id) == group_id)
            .values(generation=after.generation, lineage_mark=self._mark)
        )
        self.assignment = after
        self._shards = {
            lease.shard: msgspec.structs.replace(self._shards.get(lease.shard, _NEW), lease=lease)
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
            group_shard = self._shards[shard]
            self._shards[shard] = msgspec.structs.replace(
                group_shard, committed=offset, committed_at_ms=self.now_ms
            )


async def hold(session: AsyncSession, row: Row[Any]) -> LockedGroup:
    group = group_of(row)
    members = await members_of(session, group.group_id, locked=True)
    shards = await shards_of(session, group.group_id, locked=True)
    leases = tuple(shard.lease for shard in shards.values())
    lineage, mark = await lineage_of(session, group.stream_id)
    back_since = select(col(AttendanceRow.back_since_ms))
    back_since_ms = (await session.execute(back_since)).scalar_one()
    return LockedGroup(
        session=session,
        group=group,
        now_ms=row.now_ms,
        back_since_ms=back_since_ms,
        lineage=lineage,
        assignment=Assignment(group.generation, members, leases),
        shards=shards,
        mark=mark,
    )
