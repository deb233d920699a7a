"""`millstream audit` lists operations, and detects changes made in the database."""

import json

import psycopg
import pytest

from tests.cli_commands import millstream

pytestmark = pytest.mark.one_store


@pytest.fixture(autouse=True)
def at_the_service(service_url, monkeypatch, tmp_path):
    monkeypatch.setenv("MILLSTREAM_URL", service_url)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def test_operations_are_listed(queue):
    name = queue.rpartition("/")[2]

    ran = millstream("audit", "ls", "--resource", f"queues/{name}", "-o", "json")

    [entry] = json.loads(ran.out)
    assert (entry["operation"], entry["outcome"]) == ("put_queue", "done")


def test_intact_log_is_verified_and_its_end_shown(queue):
    ran = millstream("audit", "verify", "-o", "json")
    body = json.loads(ran.out)

    again = millstream("audit", "verify", "--known", body["last"])

    assert body["complete"]
    assert again.code == 0
    assert body["last"] in again.out


def test_log_that_differs_from_noted_end_is_reported_broken(queue):
    ran = millstream("audit", "verify", "--known", f"1:{'0' * 64}")

    assert ran.code == 1
    assert "entry 1 does not match the recorded entry" in ran.err


def test_altered_row_is_found(redis_url, database_url, monkeypatch):
    """The database is the test's own, because an altered log cannot be repaired."""
    for name, url in (("REDIS_URL", redis_url), ("DATABASE_URL", database_url)):
        monkeypatch.setenv(name, url)
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "insert into audit select n, 0, 'default', 'ada', '', '', '', 'rest', 'op', 'a', 'r', 'q',"
            " 'done', null, null, '', '' from generate_series(1, 2) n"
        )

    ran = millstream("audit", "verify", "--local")

    assert ran.code == 1
    assert "audit log verification failed: entry 1" in ran.err
