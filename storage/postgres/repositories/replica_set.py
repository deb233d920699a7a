"""Repository of the replica set: its members, and the term, epoch, phase and primary.

Every step of a change names the term that it belongs to, and changes nothing once another term has begun:

    begin(T, fence) ──▶ promote(T) ──▶ end(T)
         └── end(T): no quorum, the primary stays

Changes are announced on `REPLICA_SET_CHANNEL` in the same transaction. A step whose answer was lost counts as failed: if it
happened, the term is found unfinished and followed by another one.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, delete, insert, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain.backup_manifest import RESTORING, RestoreUnfinished
from storage.domain.errors import StorageUnavailable
from storage.domain.log.store_epoch import REPLICATED
from storage.domain.replication.replica_set import Phase, ReplicaSet
from storage.postgres.queries import query
from storage.postgres.repository import Repository
from storage.postgres.tables import DeploymentRow, StoreMemberRow

REPLICA_SET_CHANNEL = "replica_set"


class ReplicaSetRows(Repository):
    """The deployment's replica set. Every method raises StorageUnavailable."""

    async def read(self) -> ReplicaSet | None:
        """Return the replica set; None if it was never initialized."""
        async with self._database.reading() as session:
            row = (await session.execute(query("replica_set"))).one()
        _refuse_restoring(row)
        if row.primary_address is None:
            return None
        return ReplicaSet(
            members=tuple(row.members),
            primary=row.primary_address,
            term=row.store_term,
            epoch=row.store_epoch,
            phase=Phase(row.store_phase),
            min_insync_replicas=row.min_insync_replicas,
        )

    async def last_term(self) -> int:
        """Return the highest term or epoch that was ever used, also before the replica set."""
        async with self._database.reading() as session:
            row = (await session.execute(query("replica_set"))).one()
        _refuse_restoring(row)
        return max(int(row.store_term), int(row.store_epoch))

    async def initialize(
        self, members: Sequence[str], primary: str, epoch: int, min_insync_replicas: int
    ) -> bool:
        """Create the replica set; False if there is one, or the epoch is not above the last term."""
        async with self._database.writing(unknown=StorageUnavailable) as session:
            row = (await session.execute(query("lock_deployment"))).one()
            _refuse_restoring(row)
            if row.primary_id is not None or epoch <= row.last_term:
                return False
            await session.execute(delete(StoreMemberRow))
            for address in members:
                await session.execute(insert(StoreMemberRow).values(address=address))
            return await _change(
                session,
                "create_replica_set",
                term=epoch,
                primary=primary,
                replid=REPLICATED,
                min_insync=min_insync_replicas,
            )

    async def begin(self, term: int, *, after: ReplicaSet, phase: Phase) -> bool:
        """Begin a term, with `after` as the row is now; False if it has changed since it was read."""
        values = {"term": term, "after": after.term, "epoch": after.epoch, "phase": phase.value}
        async with self._database.autocommitting() as session:
            return await _change(session, "begin_term", **values)

    async def promote(
        self, term: int, primary: str, *, min_insync_replicas: int | None = None
    ) -> bool:
        """Make a member the primary of the epoch `term`; False if the term has ended."""
        async with self._database.autocommitting() as session:
            return await _promote(session, term, primary, min_insync_replicas, has_quorum=True)

    async def end(self, term: int) -> bool:
        """Return to the phase `normal`; False if the term has ended."""
        async with self._database.autocommitting() as session:
            return await _change(session, "end_term", term=term)

    async def recover(self, term: int, primary: str, members: Sequence[str]) -> bool:
        """Promote a member and remove all but `members`; False if the term has ended."""
        async with self._database.writing(unknown=StorageUnavailable) as session:
            if not await _promote(session, term, primary, None, has_quorum=False):
                return False
            address = col(StoreMemberRow.address)
            await session.execute(delete(StoreMemberRow).where(address.not_in(members)))
            return True

    async def replace(self, term: int, old: str, new: str) -> bool:
        """Put a member in the place of another and begin a term; False if `term` has ended."""
        address = col(StoreMemberRow.address)
        return await self._change_members(
            term, update(StoreMemberRow).where(address == old).values(address=new)
        )

    async def add(self, term: int, address: str) -> bool:
        """Add a member and begin a term; False if `term` has ended."""
        return await self._change_members(term, insert(StoreMemberRow).values(address=address))

    async def remove(self, term: int, address: str) -> bool:
        """Remove a member and begin a term; False if `term` has ended."""
        statement = delete(StoreMemberRow).where(col(StoreMemberRow.address) == address)
        return await self._change_members(term, statement)

    async def dissolve(self, term: int) -> bool:
        """Remove all members and the primary; False if `term` has ended. The epoch stays."""
        async with self._database.writing(unknown=StorageUnavailable) as session:
            changed = await session.execute(query("dissolve_replica_set"), {"term": term})
            if changed.one_or_none() is None:
                return False
            await session.execute(delete(StoreMemberRow))
            return True

    async def set_min_insync(self, term: int, count: int) -> bool:
        """Set the count and begin a term; False if `term` has ended."""
        return await self._change_members(
            term, update(DeploymentRow).values(min_insync_replicas=count)
        )

    async def _change_members(self, term: int, statement: Any) -> bool:
        async with self._database.writing(unknown=StorageUnavailable) as session:
            changed = await session.execute(query("advance_term"), {"term": term})
            if changed.one_or_none() is None:
                return False
            await session.execute(statement)
            await session.execute(query("notify"), {"channel": REPLICA_SET_CHANNEL, "payload": ""})
            return True


def _refuse_restoring(row: Row[Any]) -> None:
    if row.replid == RESTORING:
        raise RestoreUnfinished


async def _promote(
    session: AsyncSession,
    term: int,
    primary: str,
    min_insync_replicas: int | None,
    *,
    has_quorum: bool,
) -> bool:
    return await _change(
        session,
        "promote_member",
        term=term,
        primary=primary,
        replid=REPLICATED,
        min_insync=min_insync_replicas,
        has_quorum=has_quorum,
    )


async def _change(session: AsyncSession, name: str, **parameters: Any) -> bool:
    """Run a conditional update that announces itself; return whether it changed the row."""
    result = await session.execute(query(name), parameters | {"channel": REPLICA_SET_CHANNEL})
    return result.first() is not None
