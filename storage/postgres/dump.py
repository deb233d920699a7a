"""Dump of every table of the database at one moment, and restore into an empty database.

The output of COPY of one version of Postgres can be read by every later one, and nothing but a connection is
needed. The schema is not included: the migrations create it up to the revision that was copied, and then upgrade
it to this version's.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from graphlib import TopologicalSorter
from typing import Any, BinaryIO

import psycopg
from alembic import command
from psycopg import sql
from sqlalchemy import Connection, text

from storage.domain import limits
from storage.domain.backup_manifest import RESTORING, BackupError, StoreInUse, Table
from storage.postgres.migrate import config_of, connected, supported_revision
from storage.postgres.queries import query
from storage.postgres.schema_revision import head, revision_of

_PIECE = 1 << 20
_OF_ALEMBIC = "alembic_version"

Write = Callable[[bytes], object]


class DatabaseMoment:
    """Consistent view of the database from its creation until its transaction ends."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        revision = revision_of(connection)
        if revision is None:
            raise BackupError("the database contains no Millstream tables")
        self.revision = supported_revision(revision)
        if connection.scalar(text("select replid from deployment")) == RESTORING:
            raise BackupError("a restore into the database is in progress or was interrupted")

    def tables(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return names and columns, each table after those that it refers to."""
        return _tables(self._connection)

    def names(self, statement: str) -> set[str]:
        """Return the first column of a named statement."""
        return {str(row[0]) for row in self._connection.execute(query(statement))}

    def copy(self, name: str, columns: Sequence[str], write: Write) -> int:
        """Pass a table's rows to `write`, in pieces; return their number."""
        cursor = _cursor(self._connection)
        with cursor.copy(_copy_of(name, columns, "to stdout")) as copy:
            for piece in copy:
                write(bytes(piece))
        return int(cursor.rowcount)


@contextmanager
def moment_of(url: str) -> Iterator[DatabaseMoment]:
    """Open a consistent view of the database.

    Raises BackupError when nothing can be copied, StorageUnavailable, DatabaseTooNew.
    """
    with connected(url) as connection:
        connection.execute(text("set transaction isolation level repeatable read, read only"))
        yield DatabaseMoment(connection)


def fill(
    url: str, revision: str, tables: Sequence[Table], opened: Callable[[Table], BinaryIO]
) -> None:
    """Create the schema in an empty database, fill its tables and upgrade it to this version.

    All in one transaction. The database is marked as being restored until `finish`. Raises StoreInUse, BackupError,
    StorageUnavailable, DatabaseTooNew.
    """
    supported_revision(revision)
    with connected(url) as connection:
        if existing := _tables(connection):
            raise StoreInUse(f"the database is not empty: it contains table {existing[0][0]}")
        command.upgrade(config_of(connection), revision)
        _check_columns(connection, tables)
        _empty(connection)
        for table in tables:
            with opened(table) as file:
                _fill(connection, table, file)
        _go_on_above(connection)
        command.upgrade(config_of(connection), head())
        _leave_replica_set(connection)
        _number_messages_above(connection)


def check_empty(url: str) -> None:
    """Raise StoreInUse when the database has tables."""
    with connected(url) as connection:
        if tables := _tables(connection):
            raise StoreInUse(f"the database is not empty: it contains table {tables[0][0]}")


def finish(url: str) -> None:
    """Mark both stores as complete: services may use them."""
    with connected(url) as connection:
        connection.execute(text("update deployment set replid = ''"))


def _go_on_above(connection: Connection) -> None:
    """Move every log above all offsets that may have been assigned, into a new epoch.

    Offsets assigned after the backup began are not in it; the logs continue so far above them that none is assigned
    again. No epoch known to the store is as high as the new one.
    """
    connection.execute(
        text("update logs set ceiling = ceiling + :skipped"),
        {"skipped": limits.RESTORE_SKIPS_OFFSETS},
    )
    connection.execute(
        text("update deployment set store_epoch = store_epoch + 1, replid = :restoring"),
        {"restoring": RESTORING},
    )


def _number_messages_above(connection: Connection) -> None:
    """Raise the numbers of views' messages above those that sinks may have got.

    Batches are computed again, and may be cut differently: a sink that has a number would drop another message of that number.
    """
    statement = """
        update view_revisions
           set progress = progress || jsonb_build_object(
                 'messages', coalesce(cast(progress ->> 'messages' as bigint), 0) + :skipped)
    """
    connection.execute(text(statement), {"skipped": limits.RESTORE_SKIPS_OFFSETS})


def _leave_replica_set(connection: Connection) -> None:
    """Delete the members, which are the stores of the lost deployment; its terms stay used."""
    connection.execute(text("update deployment set primary_id = null, store_phase = 'normal'"))
    connection.execute(text("delete from store_members"))


def _tables(connection: Connection) -> list[tuple[str, tuple[str, ...]]]:
    rows = connection.execute(query("every_table")).all()
    columns = {row.name: tuple(row.columns) for row in rows if row.name != _OF_ALEMBIC}
    refers: dict[str, set[str]] = {name: set() for name in columns}
    for row in connection.execute(query("every_reference")):
        refers[row.referring].add(row.referred)
    return [(name, columns[name]) for name in TopologicalSorter(refers).static_order()]


def _check_columns(connection: Connection, tables: Sequence[Table]) -> None:
    here = {name: set(columns) for name, columns in _tables(connection)}
    if here != {table.name: set(table.columns) for table in tables}:
        raise BackupError("the tables of the backup do not match its schema revision")


def _empty(connection: Connection) -> None:
    """Delete the rows that migrations created.

    A table without rows is left alone: the audit log refuses even an empty delete.
    """
    for name, _ in reversed(_tables(connection)):
        table = sql.Identifier(name)
        cursor = _cursor(connection)
        if cursor.execute(sql.SQL("select 1 from {} limit 1").format(table)).fetchone():
            cursor.execute(sql.SQL("delete from {}").format(table))


def _fill(connection: Connection, table: Table, file: BinaryIO) -> None:
    cursor = _cursor(connection)
    try:
        with cursor.copy(_copy_of(table.name, table.columns, "from stdin")) as copy:
            while piece := file.read(_PIECE):
                copy.write(piece)
    except psycopg.errors.DataError as error:
        raise BackupError(f"{table.path} does not match its table: {error}") from None
    if cursor.rowcount != table.rows:
        raise BackupError(
            f"{table.path} has {cursor.rowcount} rows, but the manifest lists {table.rows}"
        )


def _cursor(connection: Connection) -> Any:
    """Return the driver's own cursor: SQLAlchemy does not support COPY."""
    driver = connection.connection.driver_connection
    assert driver is not None
    return driver.cursor()


def _copy_of(name: str, columns: Sequence[str], way: str) -> sql.Composed:
    return sql.SQL("copy {} ({}) " + way).format(
        sql.Identifier(name), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
