"""During a rolling upgrade, processes of the previous version continue without restart."""

import re
from functools import partial
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from storage.bootstrap import open_storage
from storage.postgres.schema_revision import COMPATIBLE_SINCE, head
from storage.schema_version import schema_fault
from tests.cli_commands import millstream

pytestmark = pytest.mark.one_store

REVISIONS = Path(__file__).parents[3] / "storage" / "postgres" / "migrations" / "versions"
BEFORE_THIS_WAS_A_RULE = {"r0003_redrives.py"}


NEWER = "9999"


def bring_to(database_url: str, revision: str, compatible_since: str = COMPATIBLE_SINCE) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("update alembic_version set version_num = %s", (revision,))
        comment = sql.SQL("comment on table alembic_version is {}").format(compatible_since)
        connection.execute(comment)


@pytest.fixture
def at_another_revision(settings):
    """Set another schema revision in the database, and restore it at the end."""
    yield partial(bring_to, settings.database_url)
    bring_to(settings.database_url, head())


async def test_process_starts_on_compatible_newer_schema(settings, at_another_revision):
    """A process that crashed during an upgrade did not become ready again, and none could be rolled back."""
    at_another_revision(NEWER, compatible_since=head())
    async with open_storage(settings) as storage:
        found = (await storage.health.check())["migrations"]

    assert found == "ok"
    assert schema_fault(settings) == ""


async def test_running_process_stays_ready_and_new_one_waits(settings, at_another_revision):
    async with open_storage(settings) as old:
        before = await old.health.check()
        at_another_revision(NEWER, compatible_since=NEWER)
        async with open_storage(settings) as late:
            during = [(await one.health.check())["migrations"] for one in (old, late)]

    assert before["migrations"] == "ok"
    assert during == ["ok", f"the database is at revision 9999; this version requires {head()}"]


async def test_downgraded_schema_is_not_ready(settings, at_another_revision):
    async with open_storage(settings) as storage:
        await storage.health.check()
        at_another_revision("0001")

        assert (await storage.health.check())["migrations"] != "ok"
    assert "at revision 0001" in schema_fault(settings)


def test_doctor_reports_older_schema(redis_url, empty_database_url, monkeypatch):
    """The command queried tables of the newer version, and ended in a traceback during an upgrade."""
    monkeypatch.setenv("REDIS_URL", redis_url)
    monkeypatch.setenv("DATABASE_URL", empty_database_url)

    done = millstream("doctor", "--json", "--port", "0")

    [finding] = [one for one in done.json if one["check"] == "migrations"]
    assert (done.code, done.err) == (1, "")
    assert finding["ok"] is False
    assert "millstream migrate" in finding["hint"]


def test_this_version_is_compatible_with_its_schema():
    assert head() >= COMPATIBLE_SINCE


@pytest.mark.parametrize("path", sorted(REVISIONS.glob("r*.py")), ids=lambda path: path.stem)
def test_migration_removes_and_renames_nothing(path):
    """The previous version still uses what a migration removes, while the upgrade rolls."""
    matches = re.findall(
        r"op\.(?:drop_\w+|rename_table|alter_column)\(|\b(?:drop|rename) (?:column|table)\b",
        path.read_text(),
    )

    assert matches == [] or path.name in BEFORE_THIS_WAS_A_RULE
