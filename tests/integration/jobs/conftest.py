"""The jobs of a deployment, over a real Postgres, whose clock decides."""

import psycopg
import pytest

from storage.postgres.database import conninfo


@pytest.fixture
def jobs(engines):
    return engines.jobs


@pytest.fixture
def later(database_url):
    """Let time pass for all jobs."""

    def move(ms: int) -> None:
        with psycopg.connect(conninfo(database_url)) as connection:
            connection.execute(
                "update jobs set run_after_ms = run_after_ms - %(ms)s,"
                " lease_until_ms = lease_until_ms - %(ms)s, ended_at_ms = ended_at_ms - %(ms)s",
                {"ms": ms},
            )

    return move
