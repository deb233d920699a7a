"""Stores of a running `millstream up`, found by its data directory."""

from api.cli.up.archive_mode import own_archive
from api.cli.up.data_directory import in_use
from api.cli.up.local_stores import store_settings
from api.config.settings import Settings


def with_running_stores(settings: Settings) -> Settings | None:
    """Return the settings with the URLs of the stores of `millstream up`.

    None where none runs on their data directory.
    """
    if settings.redis_url is not None and settings.database_url is not None:
        return settings
    if not in_use(settings.data):
        return None
    data = settings.data.resolve()
    archive_url = settings.archive_url or own_archive(data)
    return settings.model_copy(
        update={**store_settings(settings, data), "archive_url": archive_url}
    )
