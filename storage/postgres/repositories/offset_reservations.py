"""Offset reservations: Postgres records each log's ceiling, so no offset is reused (S1).

A log in the hot store assigns offsets below its `ceiling`, which was written here first. When the hot store may have
lost data, the log continues at the old ceiling, above all offsets it can have assigned:

    offsets   0 ─────────── hot_next ───────── ceiling ──────────────▶
              what the store   the hole: assigned  the log's next
              still has        and lost, or never  epoch starts here
                               assigned

A crash between the steps here and in the hot store costs only offsets, which become a hole. So an unanswered commit
counts as "nothing happened": repeating it is harmless.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from sqlalchemy import Row, delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain import limits
from storage.domain.backup_manifest import RESTORING, RestoreUnfinished
from storage.domain.errors import StorageUnavailable
from storage.domain.log.store_epoch import StoreIdentity
from storage.domain.names import LogId
from storage.domain.streams.stream import Shard
from storage.postgres.database import Database
from storage.postgres.queries import query
from storage.postgres.tables import ArchiveShardRow, DeploymentRow, LogHoleRow, LogRow

_DEPLOYMENT_LOCK = 0x65706F6368  # "epoch"


class Reservation(msgspec.Struct, frozen=True):
    """Continuation of a log: offsets from `next` to below `ceiling`, in `log_epoch`.

    `fresh`: this call decided it. Otherwise another process did, and may be about to create the log.
    `children`: of a shard that was closed, or is about to be; the log is to be closed to them.
    """

    next: int
    ceiling: int
    log_epoch: int
    fresh: bool
    children: tuple[Shard, ...] = ()


class EpochBehind(StorageUnavailable):
    """The store has a newer epoch than this process knows; nothing happened."""


class Reservations:
    """Rows of `logs` and `log_holes`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open_log(
        self, log_id: LogId, store_epoch: int, hot_next: int | None, reserve: int, lost: bool = True
    ) -> Reservation | None:
        """Reserve offsets for the log in this store epoch; None if its owner was deleted.

        `hot_next` is the next offset that the hot store knows, or None when it knows no such log, and `reserve` is how many
        offsets to reserve. The first caller in a store epoch decides; later ones get its decision.

        A log that was opened in this epoch and is not in the hot store is either being created by another process right now,
        or lost. With `lost` it continues above all that was reserved. Without, the existing decision is returned, not
        `fresh`: look in the hot store again, and call with `lost` if it still does not exist after a moment. Calling with
        `lost` immediately is safe, but when two race, one records a hole that is none. Never create a log from a reservation
        that is not `fresh` and has `hot_next` None: its offsets may have been used.

        Raises EpochBehind when the log was opened in a newer store epoch.
        """
        async with self._writing() as session:
            row = (await session.execute(query("lock_log"), {"log_id": log_id})).one_or_none()
            if row is None:
                return None
            if _is_valid(row, store_epoch, hot_next, lost):
                children = await _children(session, log_id)
                return Reservation(row.epoch_start, row.ceiling, row.log_epoch, False, children)
            opened = _next_reservation(row, reserve, await _children(session, log_id))
            preserved = max(hot_next or 0, await _archived(session, log_id))
            await _swallow(session, log_id, preserved, opened.next)
            await _store(session, log_id, store_epoch, opened)
            return opened

    async def raise_ceiling(self, log_id: LogId, store_epoch: int, at_least: int) -> int | None:
        """Reserve up to `at_least` and return the resulting ceiling, which may be higher.

        None when the log was deleted or belongs to another store epoch by now: its log must be opened again.
        """
        parameters = {"log_id": log_id, "store_epoch": store_epoch, "at_least": at_least}
        async with self._writing() as session:
            ceiling: int | None = await session.scalar(query("raise_ceiling"), parameters)
            return ceiling

    async def holes(self, log_id: LogId) -> list[tuple[int, int]]:
        """Return the log's holes (first, next), in order and disjoint."""
        statement = (
            select(col(LogHoleRow.first), col(LogHoleRow.next))
            .where(col(LogHoleRow.log_id) == log_id)
            .order_by(col(LogHoleRow.first))
        )
        async with self._database.reading() as session:
            return [(row.first, row.next) for row in await session.execute(statement)]

    async def delete_log(self, log_id: LogId) -> None:
        """Remove a log's row and holes; from now on it cannot be opened.

        Deletions do this themselves.
        """
        async with self._writing() as session:
            await session.execute(delete(LogRow).where(col(LogRow.log_id) == log_id))

    @asynccontextmanager
    async def _writing(self) -> AsyncGenerator[AsyncSession]:
        async with self._database.writing(unknown=StorageUnavailable) as session:
            yield session


def _is_valid(row: Row[Any], store_epoch: int, hot_next: int | None, lost: bool) -> bool:
    """Return whether the row's decision holds for a caller of this store epoch."""
    if row.store_epoch is None:
        return False
    if row.store_epoch > store_epoch:
        raise EpochBehind(store_epoch=row.store_epoch)
    return row.store_epoch == store_epoch and (hot_next is not None or not lost)


async def _children(session: AsyncSession, log_id: LogId) -> tuple[Shard, ...]:
    rows = await session.execute(query("children_of_log"), {"log_id": log_id})
    return tuple(
        Shard(index, child_id, int(first), int(last), opened_at_ms, None, tuple(parents))
        for index, child_id, first, last, opened_at_ms, parents in rows
    )


def _next_reservation(row: Row[Any], reserve: int, children: tuple[Shard, ...] = ()) -> Reservation:
    """Reserve above everything that was ever reserved.

    A log that was never opened starts at 0.
    """
    log_epoch = 0 if row.store_epoch is None else row.log_epoch + 1
    return Reservation(row.ceiling, row.ceiling + reserve, log_epoch, True, children)


async def _archived(session: AsyncSession, log_id: LogId) -> int:
    """Return the log's archived offset: records below it that the hot store lost are no hole."""
    archived = select(col(ArchiveShardRow.archived)).where(col(ArchiveShardRow.log_id) == log_id)
    return await session.scalar(archived) or 0


async def _store(
    session: AsyncSession, log_id: LogId, store_epoch: int, opened: Reservation
) -> None:
    await session.execute(
        update(LogRow)
        .where(col(LogRow.log_id) == log_id)
        .values(
            store_epoch=store_epoch,
            log_epoch=opened.log_epoch,
            epoch_start=opened.next,
            ceiling=opened.ceiling,
        )
    )


async def _swallow(session: AsyncSession, log_id: LogId, first: int, next_: int) -> None:
    """Record the hole [first, next_), if any, replacing those that end in it.

    A hole that contains the hot store's `first` was recorded by the loser of a race to open the log, and never came to
    exist.
    """
    if first >= next_:
        return
    await session.execute(
        delete(LogHoleRow).where(col(LogHoleRow.log_id) == log_id, col(LogHoleRow.next) > first)
    )
    session.add(LogHoleRow(log_id=log_id, first=first, next=next_))


class Decision:
    """Right to decide the store's identity, held by one process at a time."""

    def __init__(self, session: AsyncSession, remembered: StoreIdentity) -> None:
        self._session = session
        self.remembered = remembered

    async def remember(self, identity: StoreIdentity) -> None:
        """Write the identity; it takes effect once the decision's block ends."""
        await self._session.execute(
            update(DeploymentRow).values(
                store_epoch=identity.epoch, replid=identity.replid, beacon=identity.beacon
            )
        )
        self.remembered = identity


class StoreIdentities:
    """Identity of the store that Postgres last agreed with: the row `deployment`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def decide(self) -> AsyncGenerator[Decision]:
        """Lock the decision for at most half a minute; the identity is committed at the end.

        Raises StorageUnavailable, also when the commit was not answered: if the store was given an epoch that Postgres did
        not record, the next decision finds them different and decides again.
        """
        async with self._database.writing(
            unknown=StorageUnavailable, limit_ms=limits.POSTGRES_DECISION_MS_MAX
        ) as session:
            await session.execute(query("hold_deployment"), {"key": _DEPLOYMENT_LOCK})
            yield Decision(session, await _identity(session))

    async def read(self) -> StoreIdentity:
        """Return the recorded identity.

        Before the first decision that is epoch 0 with an empty replication id.
        """
        async with self._database.reading() as session:
            return await _identity(session)

    async def beat(self, beacon: int, *, epoch: int | None = None) -> None:
        """Record that the store has had `beacon`; with `epoch`, only if that is still its epoch."""
        async with self._database.writing(unknown=StorageUnavailable) as session:
            await session.execute(query("beat"), {"beacon": beacon, "epoch": epoch})

    async def secret(self) -> bytes:
        """Return 32 random bytes, created with the database, shared by every process."""
        async with self._database.reading() as session:
            return (await session.execute(select(col(DeploymentRow.secret)))).scalar_one()


async def _identity(session: AsyncSession) -> StoreIdentity:
    row = (
        await session.execute(
            select(
                col(DeploymentRow.store_epoch),
                col(DeploymentRow.replid),
                col(DeploymentRow.beacon),
            )
        )
    ).one()
    if row.replid == RESTORING:
        raise RestoreUnfinished
    return StoreIdentity(row.store_epoch, row.replid, row.beacon)
