"""Which revision a database is at, and which ones this version knows. Every process asks; only one that migrates needs alembic."""

from functools import cache
from pathlib import Path

from sqlalchemy import Connection, text

from storage.postgres.database import Database

MIGRATIONS = Path(__file__).with_name("migrations")
"""Their scripts are called by what they lead to: r0003_redrives.py to revision 0003."""


def head() -> str:
    """The newest revision this version knows."""
    return max(_known_revisions())


def is_known(revision: str | None) -> bool:
    """Whether this version, or an older one, made the revision."""
    return revision is None or revision in _known_revisions()


@cache
def _known_revisions() -> frozenset[str]:
    scripts = (MIGRATIONS / "versions").glob("r[0-9]*_*.py")
    return frozenset(script.name[1:].partition("_")[0] for script in scripts)


async def read_revision(database: Database) -> str | None:
    """The database's revision, or None when it was never migrated. Raises StorageUnavailable."""
    async with database.reading() as session:
        connection = await session.connection()
        return await connection.run_sync(revision_of)


def revision_of(connection: Connection) -> str | None:
    """As `read_revision`, on this connection."""
    if connection.scalar(text("select to_regclass('alembic_version')")) is None:
        return None
    revision: str | None = connection.scalar(text("select version_num from alembic_version"))
    return revision
