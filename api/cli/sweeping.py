"""`millstream sweep`: the periodic duties, until told to stop."""

import asyncio
import signal

from api.cli.trouble import ExitCode, Trouble
from api.settings import Settings
from consumers.sweeper import sweep
from storage.domain.errors import StorageUnavailable
from storage.lifespan import open_storage


def run(settings: Settings) -> None:
    """Sweep until SIGINT or SIGTERM. Raises Trouble when Postgres cannot be reached at the start."""
    try:
        asyncio.run(_sweep_until_told(settings))
    except StorageUnavailable as error:
        raise Trouble(error.detail, ExitCode.UNAVAILABLE) from None


async def _sweep_until_told(settings: Settings) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    async with open_storage(settings.storage()) as storage:
        sweeping = asyncio.create_task(sweep(storage))
        waiting = asyncio.create_task(told.wait())
        await asyncio.wait([sweeping, waiting], return_when=asyncio.FIRST_COMPLETED)
        for task in (sweeping, waiting):
            task.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        if not sweeping.cancelled():
            await asyncio.gather(sweeping, return_exceptions=told.is_set())
