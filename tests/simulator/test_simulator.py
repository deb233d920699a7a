"""Schedules in virtual time: the invariants hold, and faults put in on purpose are found."""

from collections.abc import Iterator

import pytest

from tests.databases import fresh_database
from tests.simulator.database import Postgres
from tests.simulator.mutations import MUTATIONS
from tests.simulator.run import Simulation
from tests.simulator.schedule import PROFILES, QUEUES, STREAMS, run_schedule

SCHEDULES = 4
"""Of each profile; `make simulate` runs thousands."""
SCHEDULES_MAX = 25
"""Within which a mutation is found."""


@pytest.fixture(scope="module")
def postgres(postgres_server_url: str, migrated_template: str) -> Iterator[Postgres]:
    with fresh_database(postgres_server_url, migrated_template) as url:
        opened = Postgres(url)
        yield opened
        opened.close()


@pytest.mark.parametrize("name", PROFILES)
def test_schedules_hold_their_invariants(name, postgres):
    simulation = Simulation(postgres)

    for seed in range(SCHEDULES):
        assert simulation.run(PROFILES[name], seed), simulation.violation

    assert simulation.operations > 100 * SCHEDULES


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutation_is_found(name, postgres):
    mutation, simulation = MUTATIONS[name], Simulation(postgres)

    with mutation.applied():
        found = not all(simulation.run(mutation.profile, seed) for seed in range(SCHEDULES_MAX))

    assert found


@pytest.mark.parametrize("profile", [QUEUES, STREAMS], ids=["queues", "streams"])
def test_seed_determines_the_course(profile, postgres):
    courses = [run_schedule(postgres, 3, profile)[1].operations for _ in range(2)]

    assert courses[0] == courses[1]
