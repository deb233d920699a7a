"""Schema version of Postgres: check and migration.

The module needs no engine, for a command that runs at each start.
"""

from storage.postgres import migrate as migrations
from storage.postgres.schema_revision import head
from storage.settings import StorageSettings


def migrate(settings: StorageSettings) -> None:
    """Migrate the database to this version's schema.

    Raises DatabaseTooNew, StorageUnavailable.
    """
    migrations.migrate(settings.database_url)


def schema_fault(settings: StorageSettings) -> str:
    """Return why this version cannot use the database as it is; empty if it can.

    Raises StorageUnavailable.
    """
    schema = migrations.current(settings.database_url)
    return (
        ""
        if schema.is_usable
        else f"the database is at revision {schema.revision}; this version requires {head()}"
    )
