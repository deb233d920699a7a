"""Lazy provisioning and repair of logs, and their offset reservations.

An append script rejects rather than guesses. Each rejection has one remedy, and Postgres decides it:

    UNKNOWN_LOG     create the log; its first offset is the end of what Postgres has reserved so far
    LOG_BEHIND      the store has a new epoch: the log jumps to the ceiling that was reserved before it
    AT_CEILING      reserve more offsets
    CALLER_BEHIND   this process missed the new epoch: read it again

A log that Postgres has closed is closed in the hot store whenever it is created or advanced, so that a store that lost
this state takes no records for it either. So an offset that may once have been assigned is never assigned again (S1),
whatever the hot store lost. Reservations run ahead of the log by an hour of its rate at least, so that appends go on
while Postgres is away. Logs that need one at the same time share a transaction, so that many cold logs do not take all
connections to Postgres.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TypeVar

import msgspec

from storage.concurrency.batcher import Batcher
from storage.concurrency.bounded_cache import BoundedCache
from storage.concurrency.single_flight import SingleFlight
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import MillstreamError, StorageUnavailable
from storage.domain.limits import Limits
from storage.domain.log.address import LogAddress
from storage.domain.names import LogId
from storage.domain.streams.lineage import pack_children
from storage.hot_store.errors import LogNotReady, LogProblem, StoreChanged
from storage.hot_store.log_store import LogOpening, LogStore
from storage.log.replica_set_epoch import ReplicaSetEpoch
from storage.log.store_epoch import StoreEpoch
from storage.postgres.repositories.offset_reservations import (
    CeilingRequest,
    EpochBehind,
    OpenRequest,
    Reservation,
    Reservations,
)

T = TypeVar("T")

_MAKING_S = 0.2  # a process with a fresh reservation creates its log within this time


class LogDeleted(Exception):
    """The log was deleted: a definition of it that is still in use is stale."""


class _LastReservation(msgspec.Struct, frozen=True):
    """The last reservation of this process for a log, or the one that it found.

    `next_offset`: of the log at that time.
    """

    amount: int
    next_offset: int
    store_epoch: int
    at_ms: int


class LogProvisioner:
    """Provisioner of logs, which applies one remedy at a time for each log."""

    def __init__(
        self,
        hot: LogStore,
        epoch: StoreEpoch | ReplicaSetEpoch,
        reservations: Reservations,
        clock: Clock,
        deployment_limits: Limits,
    ) -> None:
        self._hot = hot
        self._epoch = epoch
        self._clock = clock
        self._limits = deployment_limits
        self._openings: Batcher[OpenRequest, Reservation | None] = Batcher(reservations.open_logs)
        self._ceilings: Batcher[CeilingRequest, int | None] = Batcher(reservations.raise_ceilings)
        self._remedies = SingleFlight[LogId, None]()
        self._reserved: BoundedCache[LogId, _LastReservation] = BoundedCache(
            limits.RESERVATIONS_CACHED_MAX
        )
        self._retry_at_ms = 0

    @property
    def store_epoch(self) -> int:
        """The epoch sent with appends."""
        return self._epoch.current

    async def close(self) -> None:
        """Wait for the remedies in progress."""
        await self._remedies.finish()
        await self._openings.close()
        await self._ceilings.close()

    async def with_repair(self, log: LogAddress, work: Callable[[], Awaitable[T]]) -> T:
        """Do work on a log, repairing the log when its script requires that.

        Raises LogDeleted, or LogNotReady for a log that its definition must confirm first.
        """
        for _ in self.attempts():
            try:
                return await work()
            except StoreChanged:
                continue
            except LogNotReady as problem:
                if problem.problem is LogProblem.DELETED:
                    raise
                if log.is_view:
                    await self._begin_view(LogAddress(log.namespace, log.log_id))
                else:
                    await self.repair(log, problem)
        raise StorageUnavailable("The log is being created or moved; try again.")

    def attempts(self) -> Iterator[int]:
        """Count a call's attempts: REPAIR_ATTEMPTS_MAX in each store epoch.

        A new epoch takes two of them: one by a process that did not know it, and one by a log that was not moved into it.
        """
        attempt, epoch = 0, self.store_epoch
        while attempt < limits.REPAIR_ATTEMPTS_MAX:
            yield attempt
            attempt = attempt + 1 if epoch == self.store_epoch else 0
            epoch = self.store_epoch

    async def _begin_view(self, log: LogAddress) -> None:
        """Switch on a queue's view, which begins with its next message.

        The queue's log may have to be created first.
        """
        await self.with_repair(log, lambda: self._hot.switch_view(log, on=True))

    async def repair(self, log: LogAddress, problem: LogNotReady) -> None:
        """Apply the remedy for a rejection; the caller then tries again.

        Also if the store was replaced in the meantime. Raises LogDeleted when Postgres has no such log, StorageUnavailable
        when Postgres is unreachable.
        """
        if problem.problem is LogProblem.DELETED:
            raise LogDeleted
        with suppress(StoreChanged):
            await self._remedies.run(log.log_id, lambda: self._remedy(log, problem))

    async def _remedy(self, log: LogAddress, problem: LogNotReady) -> None:
        match problem.problem:
            case LogProblem.CALLER_BEHIND:
                await self._epoch.refresh(problem.fact)
            case LogProblem.AT_CEILING:
                await self._reserve(log, problem.fact)
            case _:
                await self._open(log, problem)

    async def _open(self, log: LogAddress, problem: LogNotReady) -> None:
        if problem.problem is LogProblem.LOG_BEHIND:
            reservation = await self._reservation(log, problem.fact, lost=False)
            await self._hot.advance(log, self._opening(reservation))
            return
        reservation = await self._reservation(log, None, lost=False)
        if not reservation.fresh:
            # Another process is about to create it, or it is lost.
            await asyncio.sleep(_MAKING_S)
            if await self._is_there(log):
                return
            reservation = await self._reservation(log, None, lost=True)
        if not await self._hot.create(log, self._opening(reservation)):
            raise LogDeleted

    def _opening(self, reservation: Reservation) -> LogOpening:
        return LogOpening(
            reservation.next,
            reservation.ceiling,
            self.store_epoch,
            reservation.log_epoch,
            pack_children(reservation.children),
        )

    async def _reservation(self, log: LogAddress, hot_next: int | None, lost: bool) -> Reservation:
        amount = self._limits.reservation_offsets_min
        request = OpenRequest(log.log_id, self.store_epoch, hot_next, amount, lost)
        try:
            reservation = await self._openings.submit(request)
        except EpochBehind as behind:
            await self._epoch.refresh(behind.facts["store_epoch"])
            raise
        if reservation is None:
            raise LogDeleted
        self._remember(log.log_id, amount, reservation.next, request.store_epoch)
        return reservation

    async def _is_there(self, log: LogAddress) -> bool:
        try:
            await self._hot.extent(log)
        except LogNotReady as problem:
            return problem.problem is LogProblem.DELETED
        return True

    async def _reserve(self, log: LogAddress, next_offset: int) -> None:
        epoch, amount = self.store_epoch, self._amount(log.log_id, next_offset)
        at_least = next_offset + limits.BATCH_RECORDS_MAX + amount
        ceiling = await self._ceilings.submit(CeilingRequest(log.log_id, epoch, at_least))
        if ceiling is None:
            await self._epoch.refresh(epoch)
            return
        await self._hot.raise_ceiling(log, ceiling, epoch)
        self._remember(log.log_id, amount, next_offset, epoch)

    def _amount(self, log_id: LogId, next_offset: int) -> int:
        """Return the offsets to reserve: two hours' at the rate since the last reservation.

        More are reserved when half of them are used up, so an hour's are left at any time. A new epoch begins with a jump,
        which is no rate.
        """
        last = self._reserved.get(log_id)
        if last is None or last.store_epoch != self.store_epoch:
            return self._limits.reservation_offsets_min
        elapsed_ms = max(self._clock.now_ms() - last.at_ms, limits.SECOND_MS)
        used = max(next_offset - last.next_offset, 0)
        amount = 2 * used * self._limits.reservation_ms // elapsed_ms
        amount = max(amount, self._limits.reservation_offsets_min)
        return min(amount, limits.RESERVATION_OFFSETS_MAX)

    def _remember(
        self, log_id: LogId, amount: int, next_offset: int, store_epoch: int
    ) -> _LastReservation:
        """Remember a reservation that stands: one that was refused says nothing about the rate."""
        now_ms = self._clock.now_ms()
        last = _LastReservation(amount, next_offset, store_epoch, now_ms)
        self._reserved[log_id] = last
        return last

    def reserve_ahead(self, log: LogAddress, next_offset: int, left: int) -> None:
        """Reserve ahead after an append when half of a reservation is used up.

        While Postgres refuses, once a second.
        """
        last = self._reserved.get(log.log_id)
        if last is None:
            amount = max(left, self._limits.reservation_offsets_min)
            last = self._remember(log.log_id, amount, next_offset, self.store_epoch)
        if left >= last.amount // 2 or log.log_id in self._remedies:
            return
        if self._clock.now_ms() >= self._retry_at_ms:
            self._remedies.begin(log.log_id, lambda: self._try_reserve(log, next_offset))

    async def _try_reserve(self, log: LogAddress, next_offset: int) -> None:
        try:
            await self._reserve(log, next_offset)
        except MillstreamError:
            self._retry_at_ms = self._clock.now_ms() + limits.RESERVATION_RETRY_MS
            raise
