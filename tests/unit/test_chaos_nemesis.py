"""A schedule of faults: the same from the same seed, every kind in turn, and no two of one thing at once."""

from itertools import combinations

import pytest

from tests.chaos.nemesis import LASTS_S, RESOURCES, schedule

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
