"""Migration of a database to the newest revision, by one process at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import Connection, NullPool, create_engine, text
from sqlalchemy.exc import DBAPIError

from storage.domain import limits
from storage.domain.backup_manifest import RESTORING, RestoreUnfinished
from storage.postgres.database import KEEPALIVES, connection_options, driver_url, refusal
from storage.postgres.schema_revision import (
    MIGRATIONS,
    Schema,
    head,
    is_supported,
    schema_of,
)

if TYPE_CHECKING:
    from alembic.config import Config

_LOCK = 0x6D69677261746521  # "migrate!"


class DatabaseTooNew(RuntimeError):
    """The database was migrated by a newer version of Millstream than this one."""

    def __init__(self, revision: str) -> None:
        super().__init__(
            f"The database is at revision {revision}, which this version of Millstream does not support (its latest is {head()}). Use the version that migrated the database, or a newer one."
        )


def migrate(url: str) -> None:
    """Migrate the database to `head()`, in one transaction, unless it can be used as it is.

    A process waits up to a minute for another one that is migrating. Raises DatabaseTooNew, and
    StorageUnavailable when the database cannot be reached, or a restore into it is not finished.
    """
    with connected(url) as connection:
        connection.execute(
            text(f"set local lock_timeout = {limits.POSTGRES_MIGRATION_WAIT_MS_MAX}")
        )
        connection.execute(text("select pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        schema = schema_of(connection)
        if not schema.is_usable:
            refuse_newer(schema.revision)
        if schema.revision is not None:
            _refuse_unfinished(connection)
        if not schema.is_usable:
            _upgrade(connection)


def _upgrade(connection: Connection) -> None:
    from alembic import (
        command,
    )  # takes as long to load as the rest, and most starts migrate nothing

    command.upgrade(config_of(connection), "head")


def _refuse_unfinished(connection: Connection) -> None:
    """Raise RestoreUnfinished while a restore of a backup is running or incomplete."""
    if connection.scalar(text("select replid from deployment")) == RESTORING:
        raise RestoreUnfinished


def current(url: str) -> Schema:
    """Return the database's schema. Raises StorageUnavailable."""
    with connected(url) as connection:
        return schema_of(connection)


def supported_revision(revision: str) -> str:
    """Return the revision. Raises DatabaseTooNew unless this version knows it."""
    refuse_newer(revision)
    return revision


def refuse_newer(revision: str | None) -> None:
    """Raise DatabaseTooNew unless this version knows the revision."""
    if revision is not None and not is_supported(revision):
        raise DatabaseTooNew(revision)


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """Connect for one transaction, committed at the end. Raises StorageUnavailable."""
    engine = create_engine(driver_url(url), poolclass=NullPool, connect_args=connection_options())
    try:
        with engine.begin() as connection:
            connection.execute(text(KEEPALIVES))
            yield connection
    except DBAPIError as error:
        raise refusal(error.orig) or error from error.orig


def config_of(connection: Connection) -> "Config":
    """Return the configuration for alembic's commands in this connection's transaction."""
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config
