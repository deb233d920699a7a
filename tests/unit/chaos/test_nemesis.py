"""A schedule of faults: the same from the same seed, every kind in turn, and no two of one thing at once."""

import asyncio
from itertools import combinations
from typing import cast

import pytest

from tests.chaos.history import History
from tests.chaos.nemesis import LASTS_S, RESOURCES, Nemesis, Planned, schedule
from tests.chaos.site import Site

SEEDS = range(20)


def test_a_seed_makes_one_schedule():
    assert schedule(7, 300) == schedule(7, 300)
    assert schedule(7, 300) != schedule(8, 300)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_faults_of_one_thing_never_overlap(seed):
    planned = schedule(seed, 600)

    for one, other in combinations(planned, 2):
        if RESOURCES[one.name] == RESOURCES[other.name]:
            assert one.over <= other.at or other.over <= one.at


@pytest.mark.parametrize("seed", SEEDS)
def test_every_kind_comes_before_any_comes_again(seed):
    names = [fault.name for fault in schedule(seed, 600)]

    assert {*names[: len(RESOURCES)]} == {*RESOURCES}


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_is_over_in_time(seed):
    planned = schedule(seed, 30)

    assert planned
    assert all(fault.at >= 0 and fault.over <= 30 for fault in planned)
    assert all(LASTS_S[0] <= fault.lasts <= LASTS_S[1] for fault in planned)


def test_some_faults_come_together():
    planned = schedule(1, 600)

    assert any(
        one.at < other.over and other.at < one.over for one, other in combinations(planned, 2)
    )


class Slow(Nemesis):
    """Needs longer than planned for everything, and says when it begins and ends."""

    def __init__(self) -> None:
        super().__init__(cast(Site, None), History())
        self.said: list[str] = []

    async def put(self, fault: Planned) -> None:
        self.said.append(f"{fault.name} begins")
        await asyncio.sleep(10 * fault.lasts)
        self.said.append(f"{fault.name} ends")


async def test_a_store_that_is_late_is_not_broken_again_before_it_is_whole():
    nemesis = Slow()
    late = Planned("kill_valkey", at=0.0, lasts=0.01, luck=0)

    await nemesis.run([late, Planned("kill_valkey_twice", at=0.02, lasts=0.01, luck=0)])

    names = ["kill_valkey", "kill_valkey_twice"]
    assert nemesis.said == [f"{name} {word}" for name in names for word in ("begins", "ends")]
