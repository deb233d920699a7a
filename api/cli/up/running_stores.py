"""Stores of a running `millstream up`, found by its data directory."""

from pydantic import SecretStr

from api.cli.up.archive_mode import own_archive
from api.cli.up.data_directory import in_use
from api.config.settings import Settings
from storage.embedded.postgres import PostgresServer
from storage.embedded.valkey import ValkeyServer


def with_running_stores(settings: Settings) -> Settings | None:
    """Return the settings with the URLs of the stores of `millstream up`.

    None where none runs on their data directory.
    """
    if settings.redis_url is not None and settings.database_url is not None:
        return settings
    if not in_use(settings.data):
        return None
    data = settings.data.resolve()
    return settings.model_copy(
        update={
            "redis_url": settings.redis_url or SecretStr(ValkeyServer(data).url),
            "database_url": settings.database_url or SecretStr(PostgresServer(data).url),
            "archive_url": settings.archive_url or own_archive(data),
        }
    )
