"""Commands `millstream up`, everything on one machine, and `millstream serve`, the API.

    up     lock ▸ version ▸ port ▸ valkey + postgres ▸ migrate ▸ api x N ▸ /readyz ▸ sweeper, deliverer ▸ worker ▸
           first key, where keys are required ▸ announce ▸ wait
    serve                   port ▸                               api x N ▸ /readyz ▸ wait

SIGINT, SIGTERM or SIGHUP ends it, in reverse order.
"""

import asyncio
import http.client
import socket
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import typer
from pydantic import SecretStr

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
from api.cli.up.listener import check_host, listening, url_of
from api.cli.up.programs import (
    api_programs,
    deliverer_program,
    first_key_program,
    migrate_program,
    sweeper_program,
    worker_program,
)
from api.cli.up.signals import run_until_stopped
from api.cli.up.supervisor import ProcessMonitor, ProcessSpec, Supervisor, server_process
from api.cli.up.tls import check_tls, own_context
from api.config.settings import Settings
from api.observability.logging import configure_logs, get_logger
from storage.domain import limits
from storage.embedded.errors import EmbeddedServerError
from storage.embedded.memory import granted_bytes
from storage.embedded.postgres import PostgresServer
from storage.embedded.servers import EmbeddedServer
from storage.embedded.valkey import ValkeyServer

READY_S = 60.0
READY_POLL_S = 0.05
READY_REPLY_S = 2.0

FIRST_STEPS = """\
Millstream is ready at {url}

  curl{key} -X PUT {url}/v1/queues/orders --json '{{}}'
  curl{key} {url}/v1/queues/orders/messages -d 'hello'
  curl{key} {url}/v1/queues/orders/receive --json '{{"messages_max": 10, "wait_seconds": 5}}'

  # dashboard: {url}/ui
"""
WITH_KEY = ' -H "authorization: Bearer $MILLSTREAM_API_KEY"'

Startup = Callable[[Supervisor], Coroutine[Any, Any, None]]


def up(settings: Settings) -> None:
    """Run everything until stopped. Raises CliError."""
    check_host(settings)
    check_tls(settings)
    with (
        data_directory(settings.data, ephemeral=settings.ephemeral) as data,
        acquire_lock(data) as lock,
    ):
        check_version(data)
        with listening(settings.host, settings.port) as listener:
            servers = _private_servers(settings, data)
            archiving = resolve_archive_mode(settings, data)
            resolved = with_stores(_child_settings(settings, data, listener, servers, archiving))
            start = _everything(resolved, servers, listener, lock, works=archiving.works)
            first = [first_key_program(resolved, (lock,))] if resolved.wants_credentials else []
            _run(resolved, listener, start, archiving.notice, first)


def serve(settings: Settings) -> None:
    """Run API processes against the stores that the settings name. Raises CliError."""
    check_host(settings)
    check_tls(settings)
    with (
        tempfile.TemporaryDirectory(prefix="millstream-") as scratch,
        listening(settings.host, settings.port) as listener,
    ):
        metrics = wiped_metrics_directory(Path(scratch))
        _run(settings, listener, _api_alone(settings, listener, metrics))


def _private_servers(settings: Settings, data: Path) -> list[EmbeddedServer]:
    """Return the stores without a URL, prepared."""
    servers: list[EmbeddedServer] = []
    try:
        if settings.redis_url is None:
            servers.append(
                ValkeyServer(
                    data,
                    durability=settings.durability,
                    server=settings.server,
                    memory_bytes=memory_bytes(settings),
                )
            )
        if settings.database_url is None:
            servers.append(PostgresServer(data))
        for server in servers:
            server.prepare()
    except EmbeddedServerError as error:
        raise CliError(str(error), ExitCode.UNAVAILABLE) from None
    except OSError as error:
        raise CliError(f"cannot prepare {data}: {error}") from None
    return servers


def memory_bytes(settings: Settings) -> int:
    """Return the memory limit of the private Valkey in bytes; 0: no limit."""
    if settings.memory_mb is not None:
        return settings.memory_mb * limits.MIB
    return max(limits.MEMORY_BYTES_MIN, int(granted_bytes() * limits.MEMORY_SHARE))


def _child_settings(
    settings: Settings,
    data: Path,
    listener: socket.socket,
    servers: list[EmbeddedServer],
    archiving: ArchiveMode,
) -> Settings:
    """Return the children's settings: ours, with the values that were decided since."""
    setting = {"valkey": "redis_url", "postgres": "database_url"}
    urls = {setting[server.name]: SecretStr(server.url) for server in servers}
    keys = settings.secret_keys_file
    if keys is None and not (settings.secret_keys and settings.secret_keys.get_secret_value()):
        keys = own_secret_keys(data)
    return settings.model_copy(
        update={
            "data": data,
            "port": listener.getsockname()[1],
            "ephemeral": False,
            "archive_url": archiving.url,
            "secret_keys_file": keys,
            **urls,
        }
    )


def _everything(
    settings: Settings,
    servers: list[EmbeddedServer],
    listener: socket.socket,
    lock: int,
    *,
    works: bool,
) -> Startup:
    async def start(supervisor: Supervisor) -> None:
        await _start_servers(supervisor, servers, lock)
        await _migrate(supervisor, migrate_program(settings, (lock,)))
        metrics = wiped_metrics_directory(settings.data)
        await _start_api(
            supervisor, settings, listener, api_programs(settings, listener, metrics, (lock,))
        )
        await supervisor.start(
            sweeper_program(settings, (lock,)), deliverer_program(settings, metrics, (lock,))
        )
        if works:
            await supervisor.start(worker_program(settings, metrics, (lock,)))

    return start


def _api_alone(settings: Settings, listener: socket.socket, metrics: Path) -> Startup:
    async def start(supervisor: Supervisor) -> None:
        await _start_api(supervisor, settings, listener, api_programs(settings, listener, metrics))

    return start


async def _start_servers(supervisor: Supervisor, servers: list[EmbeddedServer], lock: int) -> None:
    monitors = await supervisor.start(*(server_process(server, (lock,)) for server in servers))
    waits = [
        asyncio.to_thread(server.wait_ready, alive=_in_its_first_life(monitor))
        for server, monitor in zip(servers, monitors, strict=True)
    ]
    try:
        await asyncio.gather(*waits)
    except EmbeddedServerError as error:
        raise CliError(str(error), ExitCode.UNAVAILABLE) from None


def _in_its_first_life(monitor: ProcessMonitor) -> Callable[[], bool]:
    return lambda: monitor.alive and monitor.restarts == 0


async def _migrate(supervisor: Supervisor, program: ProcessSpec) -> None:
    code = await supervisor.run_once(program)
    if code != 0:
        raise CliError("the database migration failed (see above)", ExitCode.UNAVAILABLE)


async def _start_api(
    supervisor: Supervisor, settings: Settings, listener: socket.socket, programs: list[ProcessSpec]
) -> None:
    """Start the programs and wait until /readyz is 200."""
    url = url_of(listener, settings.scheme)
    monitors = await supervisor.start(*programs)
    deadline = time.monotonic() + READY_S
    check = _tls_readiness if settings.ssl_cert_reqs == "required" else readiness
    while (answer := await asyncio.to_thread(check, url)) != "":
        if ended := [monitor.program.name for monitor in monitors if monitor.restarts]:
            raise CliError(f"{ended[0]} exited during startup (see above)")
        if time.monotonic() > deadline:
            raise CliError(f"not ready after {READY_S:.0f} s: {answer}", ExitCode.UNAVAILABLE)
        await asyncio.sleep(READY_POLL_S)


def _tls_readiness(url: str) -> str:
    """Return the reason why the service does not speak TLS; empty if it does.

    More requires a client certificate, which we do not have.
    """
    address = urlsplit(url)
    try:
        with (
            socket.create_connection((address.hostname, address.port), READY_REPLY_S) as plain,
            own_context().wrap_socket(plain),
        ):
            return ""
    except OSError as error:
        return f"no response ({error})"


def readiness(url: str) -> str:
    """Return the reason why the service is not ready; empty if it is."""
    address = urlsplit(url)
    connection = _connection(address.scheme, address.hostname or "", address.port)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        body = answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return f"no response ({error})"
    finally:
        connection.close()
    return "" if answer.status == http.HTTPStatus.OK else body


def _connection(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=READY_REPLY_S, context=own_context())
    return http.client.HTTPConnection(host, port, timeout=READY_REPLY_S)


def _run(
    settings: Settings,
    listener: socket.socket,
    start: Startup,
    notice: str = "",
    first: Sequence[ProcessSpec] = (),
) -> None:
    """Start the service and keep it running.

    `first`: programs that run once the service is ready and before that is announced; they print their own output.
    """
    configure_logs(settings.log_level)
    key = WITH_KEY if settings.wants_credentials else ""
    steps = FIRST_STEPS.format(url=url_of(listener, settings.scheme), key=key)
    asyncio.run(_supervise(start, steps + notice, first))


async def _supervise(start: Startup, announcement: str, first: Sequence[ProcessSpec]) -> None:
    supervisor = Supervisor(get_logger("millstream.supervisor").warning)
    try:
        await run_until_stopped(_start_and_stay(supervisor, start, announcement, first))
    finally:
        await supervisor.stop()


async def _start_and_stay(
    supervisor: Supervisor, start: Startup, announcement: str, first: Sequence[ProcessSpec]
) -> None:
    await start(supervisor)
    for program in first:
        await supervisor.run_once(program)
    typer.echo(announcement)
    await asyncio.Event().wait()
