"""Processes of `millstream up`: their order, and what each waits for.

    valkey, or each of several ┐
    initdb ▸ postgres ▸ migrate ┴▸ barrier ▸ /readyz ▸ background work ▸ (PySpark is installed) ▸ worker
    api x N load their modules ──┘

They stop in reverse order, the stores last.
"""

import asyncio
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from api.cli.errors import CliError, ExitCode
from api.cli.up.archive_mode import ArchiveMode
from api.cli.up.data_directory import wiped_metrics_directory
from api.cli.up.listener import url_of
from api.cli.up.programs import (
    api_programs,
    background_program,
    migrate_program,
    worker_program,
)
from api.cli.up.readiness import READY_S, REPLICATED_READY_S, wait_until_ready
from api.cli.up.supervisor import ProcessMonitor, Supervisor, server_process
from api.config.settings import Settings
from storage.embedded.errors import EmbeddedServerError
from storage.embedded.servers import EmbeddedServer


class LocalDeployment:
    """One deployment's processes."""

    def __init__(
        self,
        settings: Settings,
        servers: list[EmbeddedServer],
        listener: socket.socket,
        lock: int,
        archiving: ArchiveMode,
    ) -> None:
        self._settings = settings
        self._servers = servers
        self._listener = listener
        self._keep_open = (lock,)
        self._archiving = archiving
        self._metrics = wiped_metrics_directory(settings.data)
        self._started = time.monotonic()

    async def start(self, supervisor: Supervisor) -> None:
        """Start everything but a worker; return when the service is ready."""
        apis = await self._start_stores_and_api(supervisor)
        await await_api(self._settings, self._listener, apis)
        self._report("API")
        await supervisor.start(background_program(self._settings, self._metrics, self._keep_open))

    async def start_worker(self, supervisor: Supervisor) -> None:
        """Start the worker, if one is to run here; it may wait for Spark itself."""
        if self._archiving.has_worker:
            program = worker_program(self._settings, self._metrics, self._keep_open)
            await supervisor.start(program)

    async def _start_stores_and_api(self, supervisor: Supervisor) -> list[ProcessMonitor]:
        """Let the API load its modules while the stores start and the database is migrated."""
        with _start_barrier() as barrier:
            apis = await supervisor.start(
                *api_programs(
                    self._settings, self._listener, self._metrics, self._keep_open, barrier=barrier
                )
            )
            await asyncio.gather(*(self._start_store(supervisor, it) for it in self._servers))
            await self._migrate(supervisor)
        return apis

    async def _start_store(self, supervisor: Supervisor, server: EmbeddedServer) -> None:
        try:
            await asyncio.to_thread(server.prepare)
            process = server_process(server, self._keep_open)
            [monitor] = await supervisor.start(process, stops_last=True)
            await asyncio.to_thread(
                server.wait_ready, alive=lambda: monitor.alive and monitor.restarts == 0
            )
        except EmbeddedServerError as error:
            raise CliError(str(error), ExitCode.UNAVAILABLE) from None
        except OSError as error:
            raise CliError(f"cannot prepare {self._settings.data}: {error}") from None
        self._report(server.name.capitalize())

    async def _migrate(self, supervisor: Supervisor) -> None:
        code = await supervisor.run_once(migrate_program(self._settings, self._keep_open))
        if code != 0:
            raise CliError("the database migration failed (see above)", ExitCode.UNAVAILABLE)
        self._report("Database schema")

    def _report(self, part: str) -> None:
        typer.echo(f"{part} is ready after {time.monotonic() - self._started:.1f} s", err=True)


@contextmanager
def _start_barrier() -> Iterator[int]:
    """Yield the descriptor of a barrier that opens when the block succeeds.

    Otherwise the processes behind it exit. Restarted ones inherit the descriptor too, so it stays open in ours.
    """
    inner, outer = os.pipe()
    try:
        yield inner
        os.write(outer, b"1")
    finally:
        os.close(outer)


async def await_api(
    settings: Settings, listener: socket.socket, monitors: list[ProcessMonitor]
) -> None:
    """Wait until the API is ready. Raises CliError."""
    url = url_of(listener, settings.scheme)
    await wait_until_ready(
        url,
        monitors,
        wants_client_certificate=settings.ssl_cert_reqs == "required",
        within_s=REPLICATED_READY_S if settings.durability == "replicated" else READY_S,
    )
