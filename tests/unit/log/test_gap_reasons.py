"""Reason of a gap, from the holes that lie in it."""

import asyncio

import pytest

from storage.domain.errors import StorageUnavailable
from storage.domain.names import LogId
from storage.domain.streams.stream import Gap, GapReason
from storage.log.gap_reasons import GapReasons
from storage.postgres.repositories.offset_reservations import Hole, Reservations

LOG = LogId("log")
HOLE, FAILOVER = GapReason.HOLE, GapReason.FAILOVER


class FakeReservations(Reservations):
    """Holes of a log, which are not always there."""

    def __init__(self, *holes: Hole) -> None:
        self.reads = 0
        self.is_away = False
        self._known = [*holes]

    async def holes(self, log_id: LogId) -> list[Hole]:
        self.reads += 1
        await asyncio.sleep(0)
        if self.is_away:
            raise StorageUnavailable
        return self._known


def hole(first: int, next_: int, reason: GapReason = FAILOVER) -> Hole:
    return Hole(LOG, first, next_, reason)


@pytest.mark.parametrize(
    ("holes", "reason"),
    [
        ([hole(10, 20)], FAILOVER),
        ([hole(5, 30)], FAILOVER),
        ([hole(10, 15), hole(15, 20)], FAILOVER),
        ([hole(0, 10, HOLE), hole(10, 20), hole(20, 30, HOLE)], FAILOVER),
        ([], HOLE),
        ([hole(10, 20, HOLE)], HOLE),
        ([hole(10, 15), hole(15, 20, HOLE)], HOLE),
        ([hole(5, 15, HOLE), hole(15, 30)], HOLE),
        ([hole(11, 20)], HOLE),
        ([hole(10, 19)], HOLE),
        ([hole(10, 14), hole(15, 20)], HOLE),
    ],
)
async def test_gap_is_of_a_fail_over_if_fail_overs_cover_it(holes, reason):
    reasons = GapReasons(FakeReservations(*holes))

    assert await reasons.resolve(LOG, Gap(10, 20, HOLE)) == Gap(10, 20, reason)


@pytest.mark.parametrize("gap", [None, Gap(10, 20, GapReason.EXPIRED)])
async def test_other_gaps_are_not_looked_up(gap):
    rows = FakeReservations(hole(0, 100))

    assert await GapReasons(rows).resolve(LOG, gap) == gap
    assert rows.reads == 0


async def test_gap_stays_a_hole_while_postgres_is_away():
    rows = FakeReservations(hole(10, 20))
    reasons, rows.is_away = GapReasons(rows), True

    during = await reasons.resolve(LOG, Gap(10, 20, HOLE))
    rows.is_away = False
    after = await reasons.resolve(LOG, Gap(10, 20, HOLE))

    assert [during, after] == [Gap(10, 20, HOLE), Gap(10, 20, FAILOVER)]


async def test_reason_is_read_once():
    rows = FakeReservations(hole(10, 20))
    reasons = GapReasons(rows)

    for _ in range(3):
        await reasons.resolve(LOG, Gap(10, 20, HOLE))

    assert rows.reads == 1
