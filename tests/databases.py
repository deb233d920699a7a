"""A migrated database that tests use one after another, each as if it were new."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

TEMPLATE = "migrated"
_LARGE_BYTES = 256 * 1024  # larger tables are truncated, because deleted rows would slow them down
_SCHEMA = """
    SELECT md5(string_agg(what, E'\\n' ORDER BY what)) FROM (
        SELECT 'column ' || attrelid::regclass::text || '.' || attname || ' ' || format_type(atttypid, atttypmod)
            || attnotnull::text || attisdropped::text AS what
        FROM pg_attribute JOIN pg_class ON attrelid = pg_class.oid
        WHERE relnamespace = 'public'::regnamespace AND attnum > 0
        UNION ALL SELECT 'trigger ' || tgrelid::regclass::text || '.' || tgname || ' ' || tgenabled::text
        FROM pg_trigger WHERE NOT tgisinternal
        UNION ALL SELECT 'constraint ' || conrelid::regclass::text || '.' || conname || pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    )
"""
_TABLES = """
    SELECT relname, pg_relation_size(oid) FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY relname
"""
_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""

_numbers = count(1)


@contextmanager
def fresh_database(server_url: str, template: str) -> Iterator[str]:
    """Create a copy of a database for the block.

    Takes a third of a second where file creation is slow: there are hundreds.
    """
    name = f"test_{next(_numbers)}"
    execute(server_url, f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy')
    yield database(server_url, name)
    execute(server_url, f'DROP DATABASE "{name}" WITH (FORCE)')


def database(server_url: str, name: str) -> str:
    """Return the URL of a database of this server."""
    return urlsplit(server_url)._replace(path=f"/{name}").geturl()


def execute(url: str, statement: str) -> None:
    """Execute a single statement."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


@contextmanager
def nobody_connects(url: str) -> Iterator[None]:
    """Make the database unavailable within the block, and end its connections."""
    name = urlsplit(url).path.removeprefix("/")
    server = database(url, "template1")
    execute(server, f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
    try:
        execute(
            server,
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",
        )
        yield
    finally:
        execute(server, f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


@contextmanager
def cut_off(url: str, role: str) -> Iterator[None]:
    """End the connections of a role, and refuse new ones."""
    execute(url, f"ALTER ROLE {role} NOLOGIN")
    execute(url, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'")
    try:
        yield
    finally:
        execute(url, f"ALTER ROLE {role} LOGIN")


class ReusedDatabase:
    """A copy of the template; `clean` restores it, by a new copy if its schema has changed."""

    def __init__(self, server_url: str) -> None:
        self._server_url = server_url
        self._name = f"reused_{next(_numbers)}"
        self.url = database(server_url, self._name)
        self._connection: psycopg.Connection | None = None
        self._copy()
        with psycopg.connect(self.url, autocommit=True) as connection:
            self._schema = self._schema_of(connection)
            tables = [name for name, _ in connection.execute(_TABLES.encode()).fetchall()]
            self._rows = {name: rows for name in tables if (rows := _copied(connection, name))}

    def clean(self) -> None:
        """Restore the initial state, and end all other connections.

        One connection does that for all tests: another one would spend most of its time on loading the catalog.
        """
        try:
            is_same = self._restore(self._connected())
        except psycopg.OperationalError:  # a test ended it, or the server
            is_same = self._restore(self._connected())
        if not is_same:
            self.close()
            execute(self._server_url, f'DROP DATABASE "{self._name}" WITH (FORCE)')
            self._copy()

    def close(self) -> None:
        """Close the connection, if one is open."""
        if self._connection is not None:
            self._connection.close()

    def _connected(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self.url, autocommit=True, prepare_threshold=None)
        return self._connection

    def _restore(self, connection: psycopg.Connection) -> bool:
        """Empty the tables, unless the schema has changed: then return False."""
        connection.execute(_OTHERS.encode())
        if self._schema_of(connection) != self._schema:
            return False
        self._empty(connection)
        return True

    def _copy(self) -> None:
        execute(self._server_url, f'CREATE DATABASE "{self._name}" TEMPLATE "{TEMPLATE}"')

    def _empty(self, connection: psycopg.Connection) -> None:
        tables = connection.execute(_TABLES.encode()).fetchall()
        large = [name for name, size in tables if size > _LARGE_BYTES]
        # Without triggers and foreign keys.
        statements: list[sql.Composable] = [sql.SQL("SET session_replication_role = replica")]
        if large:
            names = sql.SQL(", ").join(map(sql.Identifier, large))
            statements.append(sql.SQL("TRUNCATE {} CASCADE").format(names))
        statements += [sql.SQL("DELETE FROM {}").format(sql.Identifier(name)) for name, _ in tables]
        connection.execute(sql.SQL("; ").join(statements))
        for name, rows in self._rows.items():
            with connection.cursor().copy(_copy_of(name, "FROM STDIN")) as copy:
                copy.write(rows)

    @staticmethod
    def _schema_of(connection: psycopg.Connection) -> str:
        [found] = connection.execute(_SCHEMA.encode()).fetchone() or [""]
        return str(found)


def _copied(connection: psycopg.Connection, table: str) -> bytes:
    with connection.cursor().copy(_copy_of(table, "TO STDOUT")) as copy:
        return b"".join(bytes(piece) for piece in copy)


def _copy_of(table: str, way: str) -> sql.Composed:
    return sql.SQL("COPY {} " + way).format(sql.Identifier(table))
