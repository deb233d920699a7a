"""Migrations reach the newest revision from any other, and run in one process only."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, NullPool, create_engine

from storage.domain.errors import StorageUnavailable
from storage.postgres.database import driver_url, open_database
from storage.postgres.migrate import DatabaseTooNew, current, migrate
from storage.postgres.repositories.offset_reservations import StoreIdentities
from storage.postgres.schema_revision import COMPATIBLE_SINCE, Schema, head, read_schema
from storage.postgres.tables import METADATA
from storage.settings import StorageSettings


def test_empty_database_is_migrated(empty_database_url):
    assert current(empty_database_url).revision is None

    migrate(empty_database_url)

    assert current(empty_database_url).revision == head()


def test_tables_in_code_match_database(empty_database_url):
    migrate(empty_database_url)

    with _engine(empty_database_url).connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        differences = compare_metadata(context, METADATA)

    assert differences == []


def test_migration_is_idempotent(empty_database_url):
    migrate(empty_database_url)
    before = _account_id(empty_database_url)

    migrate(empty_database_url)

    assert _account_id(empty_database_url) == before


def test_default_namespace_has_12_digit_account_id(empty_database_url):
    migrate(empty_database_url)

    account_id = _account_id(empty_database_url)

    assert len(account_id) == 12
    assert account_id.isdecimal()


def test_concurrent_processes_migrate_once(empty_database_url):
    with ThreadPoolExecutor(4) as processes:
        outcomes = list(processes.map(migrate, [empty_database_url] * 4))

    assert outcomes == [None] * 4
    assert current(empty_database_url).revision == head()


def test_compatible_newer_database_is_left_unchanged(empty_database_url):
    """A Helm chart that is rolled back runs the former version's migration."""
    migrate(empty_database_url)
    _execute(empty_database_url, "update alembic_version set version_num = '9999'")

    migrate(empty_database_url)

    assert current(empty_database_url) == Schema("9999", COMPATIBLE_SINCE)


@pytest.mark.parametrize("comment", ["'9998'", "null"])
def test_incompatible_newer_database_is_refused(empty_database_url, comment):
    migrate(empty_database_url)
    _execute(empty_database_url, "update alembic_version set version_num = '9999'")
    _execute(empty_database_url, f"comment on table alembic_version is {comment}")

    with pytest.raises(DatabaseTooNew, match="9999"):
        migrate(empty_database_url)

    assert current(empty_database_url).revision == "9999"


def test_failed_migration_leaves_nothing_behind(empty_database_url):
    _execute(empty_database_url, "create table shards (mine int)")

    with pytest.raises(Exception, match="shards"):
        migrate(empty_database_url)

    assert _tables(empty_database_url) == {"shards"}


def test_missing_database_is_unavailable():
    with pytest.raises(StorageUnavailable):
        migrate("postgresql://postgres@/none?host=/nowhere")


async def test_revision_is_read_over_own_connections(database_url):
    async with open_database(_settings(database_url)) as database:
        assert (await read_schema(database)).revision == head()


async def test_database_without_tables_is_unavailable_with_reason(empty_database_url):
    async with open_database(_settings(empty_database_url)) as database:
        with pytest.raises(StorageUnavailable, match="has not been migrated"):
            await StoreIdentities(database).read()


def _settings(url: str) -> StorageSettings:
    return StorageSettings(redis_url="redis://unused", database_url=url)


def _engine(url: str) -> Engine:
    return create_engine(driver_url(url), poolclass=NullPool)


def _execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def _account_id(url: str) -> str:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "select account_id from namespaces where name = 'default'"
        ).fetchone()
    assert row is not None
    return str(row[0])


def _tables(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("select tablename from pg_tables where schemaname = 'public'")
        return {str(row[0]) for row in rows}
