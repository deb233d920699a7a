"""Programs of a deployment: API, background work, worker, migration."""

import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from prometheus_client.multiprocess import mark_process_dead

import api
from api.cli.config.process_settings import METRICS_DIRECTORY, child_environment
from api.cli.up.supervisor import ProcessSpec
from api.cli.up.tls import uvicorn_environment, uvicorn_options
from api.config.settings import Settings
from api.config.startup_settings import START_BARRIER
from storage.domain import limits
from storage.embedded.control_groups import granted_bytes, granted_cores

PACKAGES = Path(api.__file__).parents[1]
PYTHON = (sys.executable, "-P")  # -P: ignores a folder named `api` in the user's current directory
DRAIN_S = (
    5  # uvicorn's grace period for requests in flight; waiting receives are answered immediately
)
APPLICATION = "api.entrypoint:create_app"
PROTOCOLS = (
    "--loop=uvloop",
    "--http=api.server.protocol_negotiator:ProtocolNegotiator",
    "--ws=api.websocket.uvicorn_protocol:PushProtocol",
    f"--ws-max-size={limits.FRAME_BYTES_MAX}",
    "--ws-per-message-deflate=false",  # costs a seventh of the processor time for messages that are mostly small
    "--lifespan=on",
    "--header=x-content-type-options:nosniff",
    "--header=referrer-policy:no-referrer",
    "--no-access-log",
    "--no-proxy-headers",  # a middleware for every request, and the address is not used
)
"""Options of uvicorn for its loop, protocols and headers."""
API_GRACE_S = 10.0
WORKER_GRACE_S = 15.0  # its handlers stop, its jobs are released, its JVM ends


def api_process_count(settings: Settings) -> int:
    """Return the number of API processes: as set, otherwise by processors and memory.

    On one or two cores a second process takes from Valkey what it gains: 0.85 times the receives, 1.1 times the sends.
    """
    if settings.workers is not None:
        return settings.workers
    spare = granted_cores() - limits.CORES_OF_STORES
    affordable = granted_bytes() // limits.API_PROCESS_MEMORY_BYTES
    return max(1, min(spare, affordable, limits.API_PROCESSES_DEFAULT_MAX))


def api_programs(
    settings: Settings,
    listener: socket.socket,
    metrics: Path,
    keep_open: tuple[int, ...] = (),
    barrier: int | None = None,
) -> list[ProcessSpec]:
    """Return the API processes, all serving `listener` once `barrier` is open."""
    extra = {METRICS_DIRECTORY: str(metrics), **uvicorn_environment(settings)}
    if barrier is not None:
        extra[START_BARRIER] = str(barrier)
        keep_open = (barrier, *keep_open)
    environment = child_environment(settings, extra)
    command = [
        *_uvicorn(listener.fileno()),
        *uvicorn_protocol_options(settings),
        *uvicorn_options(settings),
    ]
    return [
        _api_program(
            f"api {number}",
            command=command,
            environment=environment,
            listener=listener,
            metrics=metrics,
            keep_open=keep_open,
        )
        for number in range(1, api_process_count(settings) + 1)
    ]


def _api_program(
    name: str,
    *,
    command: list[str],
    environment: Mapping[str, str],
    listener: socket.socket,
    metrics: Path,
    keep_open: tuple[int, ...],
) -> ProcessSpec:
    return ProcessSpec(
        name=name,
        command=command,
        environment=environment,
        grace_s=API_GRACE_S,
        keep_open=(listener.fileno(), *keep_open),
        on_end=lambda pid: _remove_gauges(pid, metrics),
        on_stop=listener.close,  # while it is open here, connections are accepted that no process serves
    )


def _uvicorn(listener: int) -> list[str]:
    return [
        *PYTHON,
        "-m",
        "api.server.uvicorn_server",
        APPLICATION,
        "--factory",
        f"--app-dir={PACKAGES}",
        f"--fd={listener}",
        "--log-level=warning",
        "--no-server-header",
        f"--timeout-graceful-shutdown={DRAIN_S}",
    ]


def uvicorn_protocol_options(settings: Settings) -> list[str]:
    """Return uvicorn's protocol options, and its keep-alive timeout."""
    only_http1 = [] if settings.http2 else ["--http=api.server.http_protocol:FastPathProtocol"]
    return [*PROTOCOLS, *only_http1, f"--timeout-keep-alive={settings.keep_alive_seconds}"]


def _remove_gauges(pid: int, metrics: Path) -> None:
    remove = cast(Callable[[int, str], None], mark_process_dead)
    remove(pid, str(metrics))


def worker_program(
    settings: Settings, metrics: Path, keep_open: tuple[int, ...] = ()
) -> ProcessSpec:
    """Return the Spark worker as a supervised program; its JVM is its child, and ends with it."""
    program = _measured_program("worker", settings, metrics, keep_open)
    return replace(program, grace_s=WORKER_GRACE_S)


def background_program(
    settings: Settings, metrics: Path, keep_open: tuple[int, ...] = ()
) -> ProcessSpec:
    """Return the sweeper and the deliverer, in one process, as a supervised program."""
    return _measured_program("background", settings, metrics, keep_open)


def _measured_program(
    command: str, settings: Settings, metrics: Path, keep_open: tuple[int, ...]
) -> ProcessSpec:
    """Return a command as a supervised program whose metrics are in a directory."""
    return ProcessSpec(
        name=command,
        command=[*PYTHON, "-m", "api.cli", command],
        environment=child_environment(settings, {METRICS_DIRECTORY: str(metrics)}),
        keep_open=keep_open,
        on_end=lambda pid: _remove_gauges(pid, metrics),
    )


def migrate_program(settings: Settings, keep_open: tuple[int, ...] = ()) -> ProcessSpec:
    """Return the migration as a separate process, so that ours stays small.

    Where keys are required it also prints the administrator's key of a new deployment.
    """
    verb = "initialize" if settings.wants_credentials else "migrate"
    return ProcessSpec(
        name="migrate",
        command=[*PYTHON, "-m", "api.cli", verb],
        environment=child_environment(settings),
        keep_open=keep_open,
    )
