"""Keeping logs writable: the store epoch, the logs themselves, and the offsets they may hand out.

An append script refuses rather than guesses. Each refusal has one remedy, and Postgres decides it:

    UNKNOWN_LOG     make the log; its first offset is what Postgres has reserved so far
    LOG_BEHIND      the store has a new epoch: the log jumps to the ceiling that was reserved before it
    AT_CEILING      reserve more offsets
    CALLER_BEHIND   this process missed the new epoch: read it again

A log that Postgres has closed is closed in the hot store whenever it is made or advanced, so that a store
that forgot it takes no records for it either. So an offset that may once have been handed out is never handed out again (S1), whatever the hot store
forgot. Reservations run ahead of the log by a minute of its rate; an append seldom waits for one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TypeVar

import msgspec

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import StorageUnavailable
from storage.domain.limits import Limits
from storage.domain.log.store_epoch import StoreIdentity, needs_new_epoch
from storage.domain.names import LogId
from storage.domain.streams.lineage import pack_children
from storage.postgres.repositories.offset_reservations import (
    EpochBehind,
    Reservation,
    Reservations,
    StoreIdentities,
)
from storage.redis.cluster_store import HotStore
from storage.redis.keys import LogAddress
from storage.redis.streams.logs import HotLogs
from storage.redis.transport.coalescing import StoreChanged
from storage.redis.transport.script_status import LogNotReady, Refusal

T = TypeVar("T")

_MAKING_S = 0.2  # a process that has a fresh reservation makes its log within this


class LogDeleted(Exception):
    """The log was deleted: its definition, if still held, is stale."""


class _Reserved(msgspec.Struct):
    """The last reservation this process made for a log."""

    amount: int
    at_ms: int


class StoreEpoch:
    """The epoch that this process's appends carry, decided in Postgres whenever the store was away."""

    def __init__(self, store: HotStore, identities: StoreIdentities) -> None:
        self._store = store
        self._identities = identities
        self._run_id = ""
        self._deciding = asyncio.Lock()
        self.current = 0

    async def check(self) -> int:
        """Before anything is sent on a new connection: is this the server process we knew? The epoch that holds now."""
        run_id = await self._store.run_id()
        async with self._deciding:
            if run_id != self._run_id:
                await self._store.check_layout()
                await self._decide()
                self._run_id = run_id
            return self.current

    async def refresh(self, at_least: int) -> None:
        """Another process knows a newer epoch."""
        async with self._deciding:
            self.current = (await self._identities.read()).epoch
            if self.current < at_least:
                await self._decide()

    async def _decide(self) -> None:
        async with self._identities.decide() as decision:
            remembered = decision.remembered
            facts = await self._store.facts(remembered)
            epoch = remembered.epoch
            if needs_new_epoch(remembered, facts):
                epoch = max(remembered.epoch, facts.epoch) + 1
                await self._store.write_epoch(epoch, max(remembered.beacon, facts.beacon))
            beacon = max(remembered.beacon, facts.beacon)
            await decision.remember(StoreIdentity(epoch, facts.replid, beacon))
        self.current = epoch


class LogProvisioner:
    """Applies the remedies, one at a time for each log."""

    def __init__(
        self,
        hot: HotLogs,
        epoch: StoreEpoch,
        reservations: Reservations,
        clock: Clock,
        known: Limits,
    ) -> None:
        self._hot = hot
        self._epoch = epoch
        self._reservations = reservations
        self._clock = clock
        self._limits = known
        self._mending: dict[LogId, asyncio.Task[None]] = {}
        self._reserved: dict[LogId, _Reserved] = {}

    @property
    def store_epoch(self) -> int:
        """What appends carry."""
        return self._epoch.current

    async def close(self) -> None:
        """Wait for remedies that are under way."""
        await asyncio.gather(*self._mending.values(), return_exceptions=True)

    async def mended(self, at: LogAddress, work: Callable[[], Awaitable[T]]) -> T:
        """Do work on a log, seeing to it where its script asks for that. Raises LogDeleted or LogNotReady for a
        log that its definition must confirm first."""
        for _ in range(limits.MENDS_MAX):
            try:
                return await work()
            except StoreChanged:
                continue
            except LogNotReady as problem:
                if problem.refusal is Refusal.DELETED:
                    raise
                if at.is_view:
                    await self._begin_view(LogAddress(at.namespace, at.log_id))
                else:
                    await self.mend(at, problem)
        raise StorageUnavailable("The log is being made or moved; try again.")

    async def _begin_view(self, at: LogAddress) -> None:
        """A queue's view begins with its next message; its log may have to be made first."""
        await self.mended(at, lambda: self._hot.switch_view(at, on=True))

    async def mend(self, at: LogAddress, problem: LogNotReady) -> None:
        """Do what the refusal asks for; the caller then tries again, also if the store became another one meanwhile.

        Raises LogDeleted when Postgres has no such log, StorageUnavailable when it cannot be asked.
        """
        if problem.refusal is Refusal.DELETED:
            raise LogDeleted
        with suppress(StoreChanged):
            await asyncio.shield(self._once(at, lambda: self._remedy(at, problem)))

    def _once(
        self, at: LogAddress, remedy: Callable[[], Coroutine[None, None, None]]
    ) -> "asyncio.Task[None]":
        task = self._mending.get(at.log_id)
        if task is None:
            task = asyncio.create_task(remedy())
            self._mending[at.log_id] = task
            task.add_done_callback(lambda done: self._done(at.log_id, done))
        return task

    def _done(self, log_id: LogId, task: "asyncio.Task[None]") -> None:
        del self._mending[log_id]
        if not task.cancelled():
            task.exception()  # whoever waits sees it; a reservation made ahead has nobody

    async def _remedy(self, at: LogAddress, problem: LogNotReady) -> None:
        match problem.refusal:
            case Refusal.CALLER_BEHIND:
                await self._epoch.refresh(problem.fact)
            case Refusal.AT_CEILING:
                await self._reserve(at, problem.fact)
            case _:
                await self._open(at, problem)

    async def _open(self, at: LogAddress, problem: LogNotReady) -> None:
        if problem.refusal is Refusal.LOG_BEHIND:
            place = await self._place(at, problem.fact, lost=False)
            await self._hot.advance(
                at,
                place.next,
                place.ceiling,
                self.store_epoch,
                place.log_epoch,
                pack_children(place.children),
            )
            return
        place = await self._place(at, None, lost=False)
        if not place.fresh:
            # Another process is about to make it, or it is lost.
            await asyncio.sleep(_MAKING_S)
            if await self._is_there(at):
                return
            place = await self._place(at, None, lost=True)
        if not await self._hot.create(
            at,
            place.next,
            place.ceiling,
            self.store_epoch,
            place.log_epoch,
            pack_children(place.children),
        ):
            raise LogDeleted

    async def _place(self, at: LogAddress, hot_next: int | None, lost: bool) -> Reservation:
        wanted = self._amount(at.log_id)
        try:
            place = await self._reservations.open_log(
                at.log_id, self.store_epoch, hot_next, wanted, lost
            )
        except EpochBehind as behind:
            await self._epoch.refresh(behind.facts["store_epoch"])
            raise
        if place is None:
            raise LogDeleted
        return place

    async def _is_there(self, at: LogAddress) -> bool:
        try:
            await self._hot.extent(at)
        except LogNotReady as problem:
            return problem.refusal is Refusal.DELETED
        return True

    async def _reserve(self, at: LogAddress, next_offset: int) -> None:
        epoch = self.store_epoch
        at_least = next_offset + limits.BATCH_RECORDS_MAX + self._amount(at.log_id)
        ceiling = await self._reservations.raise_ceiling(at.log_id, epoch, at_least)
        if ceiling is None:
            await self._epoch.refresh(epoch)
            return
        await self._hot.raise_ceiling(at, ceiling, epoch)

    def _amount(self, log_id: LogId) -> int:
        """A minute's worth: twice the last amount when that was used up sooner, half when much later."""
        now_ms, last = self._clock.now_ms(), self._reserved.get(log_id)
        amount = self._limits.reservation_offsets_min
        if last is not None and now_ms - last.at_ms < limits.RESERVATION_MS:
            amount = max(amount, 2 * last.amount)
        elif last is not None:
            amount = max(amount, last.amount // 2)
        self._reserved[log_id] = _Reserved(amount, now_ms)
        return amount

    def note(self, at: LogAddress, next_offset: int, left: int) -> None:
        """After an append: reserve ahead when half of a reservation is used up."""
        if left >= self._limits.reservation_offsets_min // 2 or at.log_id in self._mending:
            return
        self._once(at, lambda: self._reserve(at, next_offset))
