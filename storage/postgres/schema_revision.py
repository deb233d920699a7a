"""Schema revision of a database, and the revisions that this version knows.

Every process checks it; only one that migrates needs alembic.
"""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, text

from storage.postgres.database import Database

MIGRATIONS = Path(__file__).with_name("migrations")
"""Scripts are named after the revision they lead to: r0003_redrives.py to revision 0003."""

COMPATIBLE_SINCE = "0024"
"""Oldest revision whose version can work with this schema, and with what this version writes.

Raise it in the migration that removes what older versions use. Each migration leaves it in the database for them (ADR 0087).
"""

_SCHEMA = text("""
select version_num, coalesce(obj_description('alembic_version'::regclass, 'pg_class'), '') as compatible_since
from alembic_version
""")


class Schema(NamedTuple):
    """The schema of a database; `compatible_since` is empty if it is not known."""

    revision: str | None
    compatible_since: str = ""

    @property
    def is_usable(self) -> bool:
        """Return whether this version can start on it."""
        is_compatible = "" < self.compatible_since <= head()
        return self.revision == head() or (self.is_newer and is_compatible)

    @property
    def is_newer(self) -> bool:
        """Return whether a newer version than this one introduced it."""
        return not is_supported(self.revision)


def head() -> str:
    """Return the newest revision this version knows."""
    return max(_supported_revisions())


def is_supported(revision: str | None) -> bool:
    """Return whether this version, or an older one, introduced the revision."""
    return revision is None or revision in _supported_revisions()


@cache
def _supported_revisions() -> frozenset[str]:
    scripts = (MIGRATIONS / "versions").glob("r[0-9]*_*.py")
    return frozenset(script.name[1:].partition("_")[0] for script in scripts)


async def read_schema(database: Database) -> Schema:
    """Return the database's schema. Raises StorageUnavailable."""
    async with database.reading() as session:
        connection = await session.connection()
        return await connection.run_sync(schema_of)


def revision_of(connection: Connection) -> str | None:
    """Return the revision on this connection, or None when it was never migrated."""
    return schema_of(connection).revision


def schema_of(connection: Connection) -> Schema:
    """Return the schema on this connection."""
    if connection.scalar(text("select to_regclass('alembic_version')")) is None:
        return Schema(None)
    row = connection.execute(_SCHEMA).one_or_none()
    return Schema(*row) if row else Schema(None)


def remember_compatibility(connection: Connection) -> None:
    """Leave in the database since which revision versions can use it."""
    connection.execute(text(f"comment on table alembic_version is '{COMPATIBLE_SINCE}'"))
