"""Schema revision of a database, and the revisions that this version knows.

Every process checks it; only one that migrates needs alembic.
"""

from functools import cache
from pathlib import Path

from sqlalchemy import Connection, text

from storage.postgres.database import Database

MIGRATIONS = Path(__file__).with_name("migrations")
"""Scripts are named after the revision they lead to: r0003_redrives.py to revision 0003."""


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


async def read_revision(database: Database) -> str | None:
    """Return the database's revision, or None when it was never migrated.

    Raises StorageUnavailable.
    """
    async with database.reading() as session:
        connection = await session.connection()
        return await connection.run_sync(revision_of)


def revision_of(connection: Connection) -> str | None:
    """Return the revision on this connection, or None when it was never migrated."""
    if connection.scalar(text("select to_regclass('alembic_version')")) is None:
        return None
    revision: str | None = connection.scalar(text("select version_num from alembic_version"))
    return revision
