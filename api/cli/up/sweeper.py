"""Command `millstream sweep`: periodic maintenance tasks until stopped."""

import asyncio

from api.cli.errors import CliError, ExitCode
from api.cli.up.signals import run_until_stopped
from api.config.settings import Settings
from api.observability.logging import configure_logs
from consumers.maintenance.scheduler import sweep
from storage.bootstrap import open_storage
from storage.domain.errors import StorageUnavailable
from storage.domain.presence import ProcessRole
from storage.operations.presence import registered


def run(settings: Settings) -> None:
    """Sweep until SIGINT or SIGTERM.

    Raises CliError when the stores cannot be reached at the start.
    """
    configure_logs(settings.log_level)
    try:
        asyncio.run(run_until_stopped(_sweep(settings)))
    except StorageUnavailable as error:
        raise CliError(error.detail, ExitCode.UNAVAILABLE) from None


async def _sweep(settings: Settings) -> None:
    async with (
        open_storage(settings.storage()) as storage,
        registered(storage.presence, ProcessRole.SWEEPER),
    ):
        await sweep(storage)
