"""Reservations of offsets: how many, how often, and after refusals."""

from collections.abc import Sequence
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.clock import ManualClock
from storage.domain.errors import StorageUnavailable
from storage.domain.limits import (
    BATCH_RECORDS_MAX,
    REPAIR_ATTEMPTS_MAX,
    RESERVATION_MS,
    RESERVATION_OFFSETS_MAX,
    RESERVATION_OFFSETS_MIN,
    SECOND_MS,
    Limits,
)
from storage.domain.log.address import LogAddress
from storage.hot_store.errors import LogNotReady, LogProblem, StoreChanged
from storage.hot_store.log_store import LogStore
from storage.log.provisioner import LogProvisioner
from storage.log.store_epoch import StoreEpoch
from storage.postgres.repositories.offset_reservations import CeilingRequest, Reservations

LOG = LogAddress("default", "0" * 16)


class Postgres:
    """Reservations that can be refused."""

    def __init__(self) -> None:
        self.refuses = False
        self.ceilings: list[int] = []
        self.attempts = 0

    async def raise_ceilings(self, requests: Sequence[CeilingRequest]) -> list[int | None]:
        self.attempts += 1
        if self.refuses:
            raise StorageUnavailable
        self.ceilings.extend(request.at_least for request in requests)
        return [request.at_least for request in requests]

    async def open_logs(self, requests: Sequence[object]) -> list[None]:
        return [None for _ in requests]


class HotStore:
    """A log whose ceiling is raised."""

    async def raise_ceiling(self, log: LogAddress, ceiling: int, epoch: int) -> None:
        """Raise nothing: the caller has the ceiling."""


class Epoch:
    """The store epoch that a process knows."""

    current = 3

    async def refresh(self, at_least: int) -> None:
        self.current = at_least


class ChangingStore:
    """A log that refuses each of a number of epochs twice: its own process is behind, and then the log."""

    def __init__(self, changes: int) -> None:
        self.changes, self.met = changes, 0

    async def append(self) -> int:
        self.met += 1
        if self.met <= 2 * self.changes:
            if self.met % 2:
                raise LogNotReady(LogProblem.CALLER_BEHIND, Epoch.current + self.met)
            raise StoreChanged
        return self.met


class Log:
    """One log of a process, with its clock."""

    def __init__(self) -> None:
        self.clock, self.postgres, self.next_offset = ManualClock(), Postgres(), 0
        self.provisioner = LogProvisioner(
            cast(LogStore, HotStore()),
            cast(StoreEpoch, Epoch()),
            cast(Reservations, self.postgres),
            self.clock,
            Limits(),
        )

    async def meet_ceiling(self) -> bool:
        """Return whether the ceiling was raised."""
        try:
            await self.provisioner.repair(LOG, LogNotReady(LogProblem.AT_CEILING, self.next_offset))
        except StorageUnavailable:
            return False
        return True

    def reserved(self) -> int:
        """Return the amount of the last reservation."""
        return self.postgres.ceilings[-1] - self.next_offset - BATCH_RECORDS_MAX


Step = st.tuples(
    st.integers(0, 2**40), st.integers(-SECOND_MS, 10 * RESERVATION_MS), st.integers(0, 200)
)


@given(st.lists(Step, max_size=20))
async def test_refused_reservations_do_not_change_later_ones(steps):
    """An appender met a read-only Postgres for six seconds, and then bigint overflows for good."""
    refused, served = Log(), Log()
    for used, elapsed_ms, refusals in steps:
        for log in (refused, served):
            log.next_offset += used
            log.clock.advance(elapsed_ms)
        refused.postgres.refuses = True
        for _ in range(refusals):
            assert not await refused.meet_ceiling()
        refused.postgres.refuses = False

        assert await refused.meet_ceiling()
        assert await served.meet_ceiling()

        assert refused.reserved() == served.reserved()
        assert RESERVATION_OFFSETS_MIN <= refused.reserved() <= RESERVATION_OFFSETS_MAX


async def test_reservation_lasts_an_outage_at_the_rate_of_the_log():
    log, rate = Log(), 10_000
    await log.meet_ceiling()
    seconds = 100
    log.clock.advance(seconds * SECOND_MS)
    log.next_offset += seconds * rate

    await log.meet_ceiling()

    assert log.reserved() == 2 * rate * RESERVATION_MS // SECOND_MS


async def test_reservation_ahead_begins_at_half_of_last():
    log = Log()
    half = RESERVATION_OFFSETS_MIN // 2
    log.provisioner.reserve_ahead(LOG, 1, RESERVATION_OFFSETS_MIN)
    log.provisioner.reserve_ahead(LOG, half, half)
    await log.provisioner.close()
    assert log.postgres.attempts == 0

    log.provisioner.reserve_ahead(LOG, half + 1, half - 1)
    await log.provisioner.close()

    assert log.postgres.attempts == 1


async def test_reservation_ahead_of_found_log_begins_at_half_of_what_is_left():
    """A process that was restarted does not know the rates of its logs."""
    log, left = Log(), 72_000_000
    log.provisioner.reserve_ahead(LOG, 1, left)

    log.provisioner.reserve_ahead(LOG, left // 2 + 2, left // 2 - 1)
    await log.provisioner.close()

    assert log.postgres.attempts == 1


async def test_reservation_ahead_is_tried_once_a_second_when_refused():
    log = Log()
    log.postgres.refuses = True
    for _ in range(100):
        log.provisioner.reserve_ahead(LOG, 1, 0)
        await log.provisioner.close()
    assert log.postgres.attempts == 1

    log.clock.advance(SECOND_MS)
    log.provisioner.reserve_ahead(LOG, 1, 0)
    await log.provisioner.close()

    assert log.postgres.attempts == 2


async def test_append_outlasts_many_changes_of_the_epoch():
    """Five switch-overs within a second used up the attempts of messages that were being sent."""
    store = ChangingStore(changes=3 * REPAIR_ATTEMPTS_MAX)

    assert await Log().provisioner.with_repair(LOG, store.append) == 2 * store.changes + 1


async def test_append_gives_up_in_an_epoch_that_never_accepts_it():
    attempts = 0

    async def append() -> None:
        nonlocal attempts
        attempts += 1
        raise StoreChanged

    with pytest.raises(StorageUnavailable, match="created or moved"):
        await Log().provisioner.with_repair(LOG, append)

    assert attempts == REPAIR_ATTEMPTS_MAX
