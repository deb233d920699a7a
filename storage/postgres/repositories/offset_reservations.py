"""Offset reservations: Postgres records each log's ceiling, so no offset is reused (S1).

A log in the hot store assigns offsets below its `ceiling`, which was written here first. When the hot store may have
lost data, the log continues at the old ceiling, above all offsets it can have assigned:

    offsets   0 ─────────── hot_next ───────── ceiling ──────────────▶
              what the store   the hole: assigned  the log's next
              still has        and lost, or never  epoch starts here
                               assigned

A crash between the steps here and in the hot store costs only offsets, which become a hole. So an unanswered commit
counts as "nothing happened": repeating it is harmless.

A hole has the reason `failover` if nothing acknowledged is in it: the stores replicate before they acknowledge, and have
changed their primary, but lost nothing, in each epoch since the log was opened. Every other hole may be a loss.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Row, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain import limits
from storage.domain.backup_manifest import RESTORING, RestoreUnfinished
from storage.domain.errors import StorageUnavailable
from storage.domain.log.store_epoch import StoreIdentity
from storage.domain.names import LogId
from storage.domain.streams.stream import GapReason, Shard
from storage.postgres.queries import query
from storage.postgres.repository import Repository
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


class OpenRequest(msgspec.Struct, frozen=True):
    """Request to reserve offsets for a log in a store epoch; see `Reservations.open_logs`."""

    log_id: LogId
    store_epoch: int
    hot_next: int | None
    reserve: int
    lost: bool = True


class CeilingRequest(msgspec.Struct, frozen=True):
    """Request to reserve up to `at_least` for a log of a store epoch."""

    log_id: LogId
    store_epoch: int
    at_least: int


class Hole(msgspec.Struct, frozen=True):
    """Offsets [first, next) of a log without a record."""

    log_id: LogId
    first: int
    next: int
    reason: GapReason


class _Opened(NamedTuple):
    """A new decision, and the store epoch in which the log was opened before."""

    request: OpenRequest
    reservation: Reservation
    epoch_before: int | None


class EpochBehind(StorageUnavailable):
    """The store has a newer epoch than this process knows; nothing happened."""


class Reservations(Repository):
    """Rows of `logs` and `log_holes`."""

    async def open_logs(
        self, requests: Sequence[OpenRequest]
    ) -> list[Reservation | EpochBehind | None]:
        """Reserve offsets for different logs; None for one whose owner was deleted.

        `hot_next` is the next offset that the hot store knows, or None when it knows no such log, and `reserve` is how many
        offsets to reserve. The first caller in a store epoch decides; later ones get its decision.

        A log that was opened in this epoch and is not in the hot store is either being created by another process right now,
        or lost. With `lost` it continues above all that was reserved. Without, the existing decision is returned, not
        `fresh`: look in the hot store again, and call with `lost` if it still does not exist after a moment. Calling with
        `lost` immediately is safe, but when two race, one records a hole that is none. Never create a log from a reservation
        that is not `fresh` and has `hot_next` None: its offsets may have been used.

        EpochBehind for a log that was opened in a newer store epoch.
        """
        log_ids = [request.log_id for request in requests]
        async with self._writing() as session:
            rows = await session.execute(query("lock_logs"), {"log_ids": log_ids})
            rows_by_id = {row.log_id: row for row in rows}
            children = await _children(session, log_ids)
            results = [
                _decision(rows_by_id.get(request.log_id), request, children) for request in requests
            ]
            opened = [
                _Opened(request, result, rows_by_id[request.log_id].store_epoch)
                for request, result in zip(requests, results, strict=True)
                if isinstance(result, Reservation) and result.fresh
            ]
            await _store(session, opened)
            return results

    async def raise_ceilings(self, requests: Sequence[CeilingRequest]) -> list[int | None]:
        """Reserve more for different logs; return the resulting ceilings, which may be higher.

        None when the log was deleted or belongs to another store epoch by now: its log must be opened again.
        """
        parameters = {
            "log_ids": [request.log_id for request in requests],
            "store_epochs": [request.store_epoch for request in requests],
            "at_least": [request.at_least for request in requests],
        }
        async with self._writing() as session:
            rows = await session.execute(query("raise_ceilings"), parameters)
            ceilings = {row.log_id: row.ceiling for row in rows}
        return [ceilings.get(request.log_id) for request in requests]

    async def holes(self, log_id: LogId) -> list[Hole]:
        """Return the log's holes, in order and disjoint."""
        statement = (
            select(col(LogHoleRow.first), col(LogHoleRow.next), col(LogHoleRow.reason))
            .where(col(LogHoleRow.log_id) == log_id)
            .order_by(col(LogHoleRow.first))
        )
        async with self._database.reading() as session:
            return [
                Hole(log_id, row.first, row.next, GapReason(row.reason))
                for row in await session.execute(statement)
            ]

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


def _decision(
    row: Row[Any] | None, request: OpenRequest, children: Mapping[LogId, tuple[Shard, ...]]
) -> Reservation | EpochBehind | None:
    """Return the row's decision if it holds for the request's store epoch, or a new one.

    A new one is above everything that was ever reserved; a log that was never opened starts at 0.
    """
    if row is None:
        return None
    if row.store_epoch is not None and row.store_epoch > request.store_epoch:
        return EpochBehind(store_epoch=row.store_epoch)
    of_log = children.get(request.log_id, ())
    is_lost = request.hot_next is None and request.lost
    if row.store_epoch == request.store_epoch and not is_lost:
        return Reservation(row.epoch_start, row.ceiling, row.log_epoch, False, of_log)
    log_epoch = 0 if row.store_epoch is None else row.log_epoch + 1
    return Reservation(row.ceiling, row.ceiling + request.reserve, log_epoch, True, of_log)


async def _children(
    session: AsyncSession, log_ids: Sequence[LogId]
) -> dict[LogId, tuple[Shard, ...]]:
    children: dict[LogId, tuple[Shard, ...]] = {}
    rows = await session.execute(query("children_of_logs"), {"log_ids": log_ids})
    for parent, index, child_id, first, last, opened_at_ms, parents in rows:
        child = Shard(index, child_id, int(first), int(last), opened_at_ms, None, tuple(parents))
        children[parent] = (*children.get(parent, ()), child)
    return children


async def _store(session: AsyncSession, opened: Sequence[_Opened]) -> None:
    """Store new decisions, and the holes that they leave."""
    if not opened:
        return
    log_ids = [request.log_id for request, _, _ in opened]
    parameters = {
        "log_ids": log_ids,
        "store_epochs": [request.store_epoch for request, _, _ in opened],
        "log_epochs": [reservation.log_epoch for _, reservation, _ in opened],
        "starts": [reservation.next for _, reservation, _ in opened],
        "ceilings": [reservation.ceiling for _, reservation, _ in opened],
    }
    await session.execute(query("store_reservations"), parameters)
    archived = await _archived(session, log_ids)
    lossless = await _lossless_epochs(session)
    holes = [_hole(one, archived.get(one.request.log_id, 0), lossless) for one in opened]
    await _swallow(session, [hole for hole in holes if hole.first < hole.next])


async def _lossless_epochs(session: AsyncSession) -> range:
    """Return the latest epochs between which nothing acknowledged was lost."""
    since, until = col(DeploymentRow.lossless_since), col(DeploymentRow.lossless_until)
    row = (await session.execute(select(since, until))).one()
    return (
        range(0)
        if row.lossless_since is None
        else range(row.lossless_since, row.lossless_until + 1)
    )


def _hole(opened: _Opened, archived: int, lossless: range) -> Hole:
    """Return the hole that a decision leaves.

    A log that the hot store does not know, or has less of than the archive, has lost something whatever the epochs tell.
    """
    request, reservation, epoch_before = opened
    hot_next = request.hot_next
    is_fail_over = (
        hot_next is not None
        and hot_next >= archived
        and epoch_before in lossless
        and request.store_epoch in lossless
    )
    return Hole(
        request.log_id,
        max(hot_next or 0, archived),
        reservation.next,
        GapReason.FAILOVER if is_fail_over else GapReason.HOLE,
    )


async def _archived(session: AsyncSession, log_ids: Sequence[LogId]) -> dict[LogId, int]:
    """Return the logs' archived offsets: records below that the hot store lost are no hole."""
    log_id, archived = col(ArchiveShardRow.log_id), col(ArchiveShardRow.archived)
    rows = await session.execute(select(log_id, archived).where(log_id.in_(log_ids)))
    return {row.log_id: row.archived for row in rows}


async def _swallow(session: AsyncSession, holes: Sequence[Hole]) -> None:
    """Record the holes, replacing those that end in them.

    A hole that contains the hot store's `first` was recorded by the loser of a race to open the log, or by a process that
    ended before it could advance the log. So what replaces one that may be a loss may be one too.
    """
    if not holes:
        return
    parameters = {
        "log_ids": [hole.log_id for hole in holes],
        "firsts": [hole.first for hole in holes],
    }
    swallowed = await session.execute(query("delete_swallowed_holes"), parameters)
    lossy = {row.log_id for row in swallowed if row.reason != GapReason.FAILOVER}
    rows = [
        {
            "log_id": hole.log_id,
            "first": hole.first,
            "next": hole.next,
            "reason": GapReason.HOLE if hole.log_id in lossy else hole.reason,
        }
        for hole in holes
    ]
    await session.execute(insert(LogHoleRow), rows)


class Decision:
    """Right to decide the store's identity, held by one process at a time."""

    def __init__(self, session: AsyncSession, remembered: StoreIdentity) -> None:
        self._session = session
        self.remembered = remembered

    async def remember(self, identity: StoreIdentity) -> None:
        """Write the identity; it takes effect once the decision's block ends."""
        await self._session.execute(
            update(DeploymentRow).values(
                store_epoch=identity.epoch,
                replid=identity.replid,
                beacon=identity.beacon,
                lossless_since=identity.lossless_since,
                lossless_until=None if identity.lossless_since is None else identity.epoch,
            )
        )
        self.remembered = identity


class StoreIdentities(Repository):
    """Identity of the store that Postgres last agreed with: the row `deployment`."""

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

    async def beat(self, beacon: int, *, epoch: int | None = None) -> bool:
        """Record that the store has had `beacon`; with `epoch`, only if that is still its epoch.

        Returns whether it was recorded.
        """
        async with self._database.autocommitting() as session:
            parameters = {"beacon": beacon, "epoch": epoch}
            return await session.scalar(query("beat"), parameters) is not None

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
                col(DeploymentRow.lossless_since),
                col(DeploymentRow.lossless_until),
            )
        )
    ).one()
    if row.replid == RESTORING:
        raise RestoreUnfinished
    is_current = row.lossless_until == row.store_epoch
    lossless_since = row.lossless_since if is_current else None
    return StoreIdentity(row.store_epoch, row.replid, row.beacon, lossless_since)
