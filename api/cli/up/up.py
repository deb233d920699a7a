"""Commands `millstream up`, everything on one machine, and `millstream serve`, the API.

    up     lock ▸ version ▸ port ▸ deployment (see there) ▸ announce ▸ worker ▸ wait
    serve                   port ▸ api x N ▸ /readyz      ▸ announce ▸          wait

SIGINT, SIGTERM or SIGHUP ends it, in reverse order.
"""

import asyncio
import socket
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import typer

from api.cli.config.process_settings import with_stores
from api.cli.errors import CliError, ExitCode
from api.cli.up.archive_mode import ArchiveMode, resolve_archive_mode
from api.cli.up.data_directory import (
    acquire_lock,
    check_version,
    data_directory,
    own_secret_keys,
    wiped_metrics_directory,
)
from api.cli.up.deployment import LocalDeployment, await_api
from api.cli.up.listener import check_host, listening, raise_open_files_limit, url_of
from api.cli.up.local_stores import apply_replicas, store_servers, store_settings
from api.cli.up.programs import api_process_count, api_programs
from api.cli.up.signals import run_until_stopped
from api.cli.up.supervisor import Supervisor
from api.cli.up.tls import check_tls
from api.config.settings import Settings
from api.observability.logging import configure_logs, get_logger
from storage.embedded.control_groups import granted_cores
from storage.embedded.errors import EmbeddedServerError
from storage.embedded.servers import EmbeddedServer

FIRST_STEPS = """\
Millstream is ready at {url}

  curl{key} -X PUT {url}/v1/queues/orders --json '{{}}'
  curl{key} {url}/v1/queues/orders/messages -d 'hello'
  curl{key} {url}/v1/queues/orders/receive --json '{{"messages_max": 10, "wait_seconds": 5}}'

  # dashboard: {url}/ui
"""
WITH_KEY = ' -H "authorization: Bearer $MILLSTREAM_API_KEY"'

Step = Callable[[Supervisor], Coroutine[Any, Any, None]]
"""Part of the life of a service: `start`, until it is ready, or what follows then."""


def up(settings: Settings) -> None:
    """Run everything until stopped. Raises CliError."""
    raise_open_files_limit()
    check_host(settings)
    check_tls(settings)
    with (
        data_directory(settings.data, ephemeral=settings.ephemeral) as data,
        acquire_lock(data) as lock,
    ):
        check_version(data)
        with listening(settings.host, settings.port) as listener:
            notice, servers, urls = _private_stores(settings, data)
            archiving = resolve_archive_mode(settings, data)
            resolved = with_stores(_child_settings(settings, data, listener, urls, archiving))
            deployment = LocalDeployment(resolved, servers, listener, lock, archiving)
            notice += archiving.notice
            _run(resolved, listener, deployment.start, deployment.start_worker, notice)


def serve(settings: Settings) -> None:
    """Run API processes against the stores that the settings name. Raises CliError."""
    raise_open_files_limit()
    check_host(settings)
    check_tls(settings)
    settings = settings.model_copy(update={"workers": api_process_count(settings)})
    with (
        tempfile.TemporaryDirectory(prefix="millstream-") as scratch,
        listening(settings.host, settings.port) as listener,
    ):
        metrics = wiped_metrics_directory(Path(scratch))

        async def start(supervisor: Supervisor) -> None:
            programs = api_programs(settings, listener, metrics)
            await await_api(settings, listener, await supervisor.start(*programs))

        _run(settings, listener, start)


def _private_stores(
    settings: Settings, data: Path
) -> tuple[str, list[EmbeddedServer], dict[str, Any]]:
    """Return what to announce of the stores without a URL, their servers, and their settings."""
    try:
        notice = apply_replicas(settings, data)
        return notice, store_servers(settings, data), store_settings(settings, data)
    except EmbeddedServerError as error:
        raise CliError(str(error), ExitCode.UNAVAILABLE) from None


def _child_settings(
    settings: Settings,
    data: Path,
    listener: socket.socket,
    urls: dict[str, Any],
    archiving: ArchiveMode,
) -> Settings:
    """Return the children's settings: ours, with the values that were decided since."""
    keys = settings.secret_keys_file
    if keys is None and not (settings.secret_keys and settings.secret_keys.get_secret_value()):
        keys = own_secret_keys(data)
    return settings.model_copy(
        update={
            "data": data,
            "port": listener.getsockname()[1],
            "ephemeral": False,
            "workers": api_process_count(settings),
            "archive_url": archiving.url,
            "secret_keys_file": keys,
            **urls,
        }
    )


def _run(
    settings: Settings,
    listener: socket.socket,
    start: Step,
    afterwards: Step | None = None,
    notice: str = "",
) -> None:
    """Start the service, announce it, and keep it running."""
    configure_logs(settings.log_level)
    typer.echo(_api_processes(api_process_count(settings), granted_cores()), err=True)
    key = WITH_KEY if settings.wants_credentials else ""
    steps = FIRST_STEPS.format(url=url_of(listener, settings.scheme), key=key)
    asyncio.run(_supervise(start, steps + notice, afterwards))


def _api_processes(count: int, cores: int) -> str:
    """Return the number of API processes in words."""
    return f"{count} API process{'' if count == 1 else 'es'} on {cores} core{'' if cores == 1 else 's'}"


async def _supervise(start: Step, announcement: str, afterwards: Step | None) -> None:
    supervisor = Supervisor(get_logger("millstream.supervisor").warning)
    try:
        await run_until_stopped(_start_and_stay(supervisor, start, announcement, afterwards))
    finally:
        await supervisor.stop()


async def _start_and_stay(
    supervisor: Supervisor, start: Step, announcement: str, afterwards: Step | None
) -> None:
    await start(supervisor)
    typer.echo(announcement)
    if afterwards is not None:
        await afterwards(supervisor)
    await asyncio.Event().wait()
