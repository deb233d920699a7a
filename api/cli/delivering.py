"""`millstream deliver`: webhooks, until told to stop."""

import asyncio

import uvloop

from api.cli.signals import until_told_to_stop
from api.cli.trouble import ExitCode, Trouble
from api.collecting import tracing
from api.logs import configure_logs
from api.metrics import DeliveryMetrics
from api.settings import Settings
from consumers.webhooks.deliverer import Deliverer
from storage.bootstrap import open_storage
from storage.domain.errors import StorageUnavailable
from storage.domain.presence import ProcessRole
from storage.operations.presence import present


def run(settings: Settings) -> None:
    """Deliver until SIGINT or SIGTERM. Raises Trouble when the stores cannot be reached at the start."""
    configure_logs(settings.log_level)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(until_told_to_stop(_deliver(settings)))
    except StorageUnavailable as error:
        raise Trouble(error.detail, ExitCode.UNAVAILABLE) from None


async def _deliver(settings: Settings) -> None:
    told = settings.storage()
    async with (
        tracing(settings) as opened,
        open_storage(told) as storage,
        present(storage.presence, ProcessRole.DELIVERER),
    ):
        metrics = DeliveryMetrics()
        await Deliverer(storage, told.webhook_allow, metrics, tracing=opened).run()
