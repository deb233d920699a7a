"""Command `millstream deliver`: deliver webhooks until stopped."""

import asyncio

import uvloop

from api.cli.errors import CliError, ExitCode
from api.cli.up.signals import run_until_stopped
from api.config.settings import Settings
from api.observability.logging import configure_logs
from api.observability.metric_buffers import WebhookMetrics
from api.observability.tracing_setup import tracing
from consumers.webhooks.deliverer import Deliverer
from storage.bootstrap import open_storage
from storage.domain.errors import StorageUnavailable
from storage.domain.presence import ProcessRole
from storage.operations.presence import registered


def run(settings: Settings) -> None:
    """Deliver until SIGINT or SIGTERM.

    Raises CliError when the stores cannot be reached at the start.
    """
    configure_logs(settings.log_level)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run_until_stopped(_deliver(settings)))
    except StorageUnavailable as error:
        raise CliError(error.detail, ExitCode.UNAVAILABLE) from None


async def _deliver(settings: Settings) -> None:
    storage_settings = settings.storage()
    async with (
        tracing(settings) as opened,
        open_storage(storage_settings) as storage,
        registered(storage.presence, ProcessRole.DELIVERER),
    ):
        metrics = WebhookMetrics()
        await Deliverer(storage, storage_settings.webhook_allow, metrics, tracing=opened).run()
