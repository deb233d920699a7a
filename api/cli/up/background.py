"""Commands `millstream sweep`, `deliver` and `background`: background work until stopped."""

import asyncio
import os
import secrets
import socket
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import uvloop
from msgspec.structs import replace

from api.cli.errors import CliError, ExitCode
from api.cli.up.signals import run_until_stopped
from api.config.settings import Settings
from api.observability.background_metrics import (
    RouterMetrics,
    SweeperMetrics,
    WebhookMetrics,
    count_primary_change,
)
from api.observability.logging import configure_logs
from api.observability.tracing_setup import tracing
from consumers.maintenance.scheduler import Sweeper
from storage.bootstrap import Storage, open_storage
from storage.domain.errors import StorageUnavailable
from storage.domain.presence import ProcessRole, ProcessSeen
from storage.operations.presence import NoSockets, registered

Work = Callable[[Settings, Storage], Coroutine[Any, Any, None]]


def run(settings: Settings, works: Sequence[Work]) -> None:
    """Do the work until SIGINT or SIGTERM. Work that ends ends the process.

    Raises CliError when the stores cannot be reached at the start.
    """
    configure_logs(settings.log_level)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run_until_stopped(_run(settings, works)))
    except StorageUnavailable as error:
        raise CliError(error.detail, ExitCode.UNAVAILABLE) from None


async def _run(settings: Settings, works: Sequence[Work]) -> None:
    async with (
        open_storage(settings.storage(), on_primary_change=count_primary_change) as storage,
        asyncio.TaskGroup() as group,
    ):
        for work in works:
            group.create_task(work(settings, storage))


async def sweep(settings: Settings, storage: Storage) -> None:
    """Run the maintenance tasks of each store that this process leads, until cancelled."""
    holder = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
    sweeper = Sweeper(storage, holder, metrics=SweeperMetrics())
    async with registered(storage.presence, ProcessRole.SWEEPER, SweeperPresence(sweeper)):
        await sweeper.run()


class SweeperPresence(NoSockets):
    """Presence of a sweeper, which publishes what it leads."""

    def __init__(self, sweeper: Sweeper) -> None:
        self._sweeper = sweeper

    def describe(self, process: ProcessSeen) -> ProcessSeen:
        return replace(process, leads=self._sweeper.leads)


async def deliver(settings: Settings, storage: Storage) -> None:
    """Deliver webhooks, route topics and pull mirrors until cancelled."""
    from consumers.mirrors.runner import MirrorRunner
    from consumers.routing.router import Router
    from consumers.webhooks.deliverer import Deliverer

    async with (
        tracing(settings) as opened,
        registered(storage.presence, ProcessRole.DELIVERER),
    ):
        allow = settings.storage().webhook_allow
        async with asyncio.TaskGroup() as group:
            group.create_task(Deliverer(storage, allow, WebhookMetrics(), tracing=opened).run())
            group.create_task(MirrorRunner(storage, allow).run())
            group.create_task(Router(storage, RouterMetrics().finished).run())
