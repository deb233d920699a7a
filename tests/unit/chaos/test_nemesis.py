"""Fault schedules: deterministic by seed, every kind in turn, no overlap on one resource."""

import asyncio
from itertools import combinations
from typing import cast

import pytest

from tests.chaos.history import History
from tests.chaos.nemesis import LASTS_S, OF_THE_OPERATOR, RESOURCES, Nemesis, Planned, schedule
from tests.chaos.site import Site

SEEDS = range(20)


def test_schedule_is_determined_by_seed():
    assert schedule(7, 300) == schedule(7, 300)
    assert schedule(7, 300) != schedule(8, 300)


@pytest.mark.parametrize("seed", SEEDS)
def test_faults_of_one_resource_do_not_overlap(seed):
    planned = schedule(seed, 600)

    for one, other in combinations(planned, 2):
        if RESOURCES[one.name] == RESOURCES[other.name]:
            assert one.over <= other.at or other.over <= one.at


@pytest.mark.parametrize("seed", SEEDS)
def test_every_kind_occurs_before_any_repeats(seed):
    names = [fault.name for fault in schedule(seed, 600)]

    assert {*names[: len(RESOURCES)]} == {*RESOURCES}


@pytest.mark.parametrize("seed", SEEDS)
def test_faults_end_within_the_schedule(seed):
    planned = schedule(seed, 30)

    assert planned
    assert all(fault.at >= 0 and fault.over <= 30 for fault in planned)
    assert all(LASTS_S[0] <= fault.lasts <= LASTS_S[1] for fault in planned)


def test_faults_of_different_resources_may_overlap():
    planned = schedule(1, 600)

    assert any(
        one.at < other.over and other.at < one.over for one, other in combinations(planned, 2)
    )


class Slow(Nemesis):
    """Take longer than planned for every fault, and log its beginning and end."""

    def __init__(self) -> None:
        super().__init__(cast(Site, None), History(), {})
        self.said: list[str] = []

    async def put(self, fault: Planned) -> None:
        self.said.append(f"{fault.name} begins")
        await asyncio.sleep(10 * fault.lasts)
        self.said.append(f"{fault.name} ends")


async def test_late_fault_delays_next_fault_of_same_resource():
    nemesis = Slow()
    late = Planned("kill_valkey", at=0.0, lasts=0.01, luck=0)

    await nemesis.run([late, Planned("kill_valkey_twice", at=0.02, lasts=0.01, luck=0)])

    names = ["kill_valkey", "kill_valkey_twice"]
    assert nemesis.said == [f"{name} {word}" for name in names for word in ("begins", "ends")]


@pytest.mark.parametrize("name", OF_THE_OPERATOR)
async def test_fault_that_is_a_request_gets_its_duration(name):
    durations: list[float] = []

    async def request(lasts: float) -> None:
        durations.append(lasts)

    nemesis = Nemesis(cast(Site, None), History(), {name: request})

    await nemesis.run([Planned(name, at=0.0, lasts=0.5, luck=0)])

    assert durations == [0.5]
