"""Statements that a process has prepared, after the migration of a newer version."""

import psycopg
from sqlalchemy.dialects import postgresql

from storage.postgres.migrate import migrate
from storage.postgres.queries import statements
from storage.postgres.tables import METADATA

DIALECT = postgresql.dialect(paramstyle="numeric_dollar")


def test_prepared_statements_outlive_new_columns(empty_database_url):
    """Postgres refuses a prepared statement whose columns have changed, as those of `select *` do."""
    migrate(empty_database_url)
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        server = connection.pgconn
        prepared = {
            name: server.prepare(name.encode(), str(sql.compile(dialect=DIALECT)).encode())
            for name, sql in statements().items()
        }
        assert {name: _failure(one) for name, one in prepared.items() if _failure(one)} == {}

        for table in METADATA.tables:
            connection.execute(f'alter table "{table}" add column of_a_newer_version text')

        described = {name: server.describe_prepared(name.encode()) for name in prepared}
    assert {name: _failure(one) for name, one in described.items() if _failure(one)} == {}


def _failure(result: psycopg.pq.abc.PGresult) -> str:
    """Return why a statement failed; empty if it did not."""
    return result.error_message.decode()
