"""`millstream archive flush`: reported failures and results. The test is the worker."""

import subprocess
import sys
from typing import Any

import httpx
import psycopg
import pytest

from tests.conditions import PATIENCE_S, wait_until


@pytest.mark.parametrize(
    ("state", "code", "said"),
    [("done", 0, "is archived."), ("failed", 1, "is not completely archived.")],
)
def test_flush_reports_failures_and_result(
    service_url: str, service_database_url: str, client: httpx.Client, name: str, state, code, said
):
    client.put(f"/v1/streams/{name}", json={}).raise_for_status()
    command = [sys.executable, "-m", "api.cli", "archive", "flush", name, "--url", service_url]
    with (
        psycopg.connect(service_database_url, autocommit=True) as database,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
    ):
        wait_until(lambda: _set(database, name, "queued", "no way there"))
        assert process.stderr is not None
        assert process.stdout is not None
        assert process.stderr.readline().decode().strip().endswith("will be retried: no way there")
        _set(database, name, state, "" if state == "done" else "no way there")

        assert process.wait(PATIENCE_S) == code
        assert process.stdout.read().decode() == f"Stream {name} {said}\n"
        assert ("no way there" in process.stderr.read().decode()) is (state == "failed")


def _set(database: psycopg.Connection[Any], stream: str, state: str, failure: str) -> bool:
    """Set the state of the stream's job; returns False when there is none yet."""
    changed = database.execute(
        "update jobs set state = %s, failure = %s where spec->>'stream' = %s",
        (state, failure, stream),
    )
    return changed.rowcount == 1
