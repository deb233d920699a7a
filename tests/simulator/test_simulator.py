"""Schedules in virtual time: the invariants hold, and faults put in on purpose are found."""

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.databases import fresh_database
from tests.simulator.database import Postgres
from tests.simulator.mutations import MUTATIONS
from tests.simulator.queue_clients import sweep
from tests.simulator.run import Simulation
from tests.simulator.schedule import EXERCISED_WITHIN, PROFILES, QUEUES
from tests.simulator.world import World

SCHEDULES = 2
"""Of each profile; `make simulate` runs as many as there is time for."""
SCHEDULES_MAX = 50
"""Within which a mutation is found."""
WITHOUT_WORKERS = QUEUES._replace(clients=(sweep,))


@pytest.fixture(scope="module")
def postgres(postgres_server_url: str, migrated_template: str) -> Iterator[Postgres]:
    with fresh_database(postgres_server_url, migrated_template) as url:
        opened = Postgres(url)
        yield opened
        opened.close()


@pytest.fixture
def simulation(postgres: Postgres) -> Simulation:
    return Simulation(postgres)


@pytest.mark.parametrize("name", PROFILES)
def test_schedules_hold_their_invariants(name, simulation):
    for seed in range(SCHEDULES):
        assert simulation.run(PROFILES[name], seed), simulation.report()

    assert simulation.holds, simulation.report()
    assert simulation.operations > 100 * SCHEDULES


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutation_violates_its_invariant(name, simulation):
    mutation = MUTATIONS[name]
    seeds = dict.fromkeys((mutation.likely_seed, *range(SCHEDULES_MAX)))

    assert any(simulation.finds(mutation, seed) for seed in seeds)


def test_simulation_fails_when_an_invariant_is_not_exercised(simulation):
    simulation.run(WITHOUT_WORKERS, 0)

    assert simulation.violation is None
    assert not simulation.holds
    assert "Q4 no acknowledged message is redelivered" in simulation.unexercised()


def test_rare_invariant_is_required_of_long_runs(simulation, monkeypatch):
    rare = "Q4 no acknowledged message is redelivered"
    monkeypatch.setitem(EXERCISED_WITHIN, rare, 2)

    simulation.run(WITHOUT_WORKERS, 0)
    assert rare not in simulation.unexercised()
    simulation.run(WITHOUT_WORKERS, 1)
    assert rare in simulation.unexercised()


def test_schedule_fails_when_its_drain_does_not_end(simulation):
    async def wait_forever(world: World) -> None:
        world.waits_for = "a queue to be empty"
        await asyncio.Event().wait()

    assert not simulation.run(QUEUES._replace(drain=wait_forever), 0)
    assert "still waiting for a queue to be empty" in simulation.report()


def test_schedule_fails_for_an_unexpected_exception(simulation):
    async def fail(world: World, name: str) -> None:
        raise ZeroDivisionError

    assert not simulation.run(QUEUES._replace(clients=(fail,)), 7)
    assert "ZeroDivisionError" in simulation.report()
    assert "--profile queues --seed 7 --schedules 1" in simulation.report()


def test_schedule_fails_for_a_logged_exception(simulation):
    async def fail(world: World, name: str) -> None:
        try:
            raise ZeroDivisionError
        except ZeroDivisionError:
            logging.getLogger("storage.queues").warning("task_failed", exc_info=True)

    assert not simulation.run(QUEUES._replace(clients=(fail,)), 0)
    assert "task_failed" in simulation.report()
    assert logging.getLogger("storage").propagate


def test_seed_determines_the_course_of_each_profile(postgres):
    """Also where objects have other addresses, and sets another order."""
    command = [sys.executable, "-m", "tests.simulator.run", "--postgres", postgres.url]
    processes = [
        subprocess.run(
            [*command, "--schedules", str(len(PROFILES))],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=False,
        )
        for hash_seed in ("1", "2")
    ]

    assert [process.returncode for process in processes] == [0, 0], processes
    assert processes[0].stdout.startswith(f"{len(PROFILES)} schedules")
    assert processes[0].stdout == processes[1].stdout
