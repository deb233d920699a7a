"""Whether Postgres has this version's schema, and how it gets it: a module that needs no engine, for a command that is
run at each start.
"""

from storage.postgres import migrate as migrations
from storage.postgres.schema_revision import head
from storage.settings import StorageSettings


def migrate(settings: StorageSettings) -> None:
    """Bring the database to this version's schema. Raises DatabaseTooNew, StorageUnavailable."""
    migrations.migrate(settings.database_url)


def schema_fault(settings: StorageSettings) -> str:
    """What keeps this version from using the database as it is; empty for nothing. Raises StorageUnavailable."""
    found, wanted = migrations.current(settings.database_url), head()
    return "" if found == wanted else f"the database is at {found}, this version needs {wanted}"
