"""The programs of a deployment that are ours: API processes, the sweeper, deliverers, the Spark worker, the migration, the first key."""

import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from prometheus_client.multiprocess import mark_process_dead

import api
from api.cli.config.process_settings import METRICS_DIRECTORY, child_environment
from api.cli.up.supervisor import Program
from api.cli.up.tls import uvicorn_environment, uvicorn_options
from api.config.settings import Settings
from storage.domain import limits

PACKAGES = Path(api.__file__).parents[1]
PYTHON = (sys.executable, "-P")  # -P: a folder named `api` where the user stands is not ours
DRAIN_S = (
    5  # what uvicorn gives requests in flight at the end; waiting receives are answered at once
)
APPLICATION = "api.entrypoint:create_app"
PROTOCOLS = (
    "--loop=uvloop",
    "--http=api.server.http_protocol:FastPathProtocol",
    "--ws=api.websocket.uvicorn_protocol:PushProtocol",
    f"--ws-max-size={limits.FRAME_BYTES_MAX}",
    "--ws-per-message-deflate=false",  # a seventh of the processor for what is mostly small already
    "--lifespan=on",
    "--header=x-content-type-options:nosniff",
    "--header=referrer-policy:no-referrer",
    "--no-access-log",
    "--no-proxy-headers",  # a middleware for every request, and nobody asks for the address
)
"""How uvicorn is to speak."""
API_GRACE_S = 10.0
WORKER_GRACE_S = 15.0  # its handlers stop, its jobs are given back, its JVM ends


def api_programs(
    settings: Settings, listener: socket.socket, metrics: Path, keep_open: tuple[int, ...] = ()
) -> list[Program]:
    """As many API processes as `settings.workers`, all serving `listener`."""
    more = {METRICS_DIRECTORY: str(metrics), **uvicorn_environment(settings)}
    environment = child_environment(settings, more)
    command = [*_uvicorn(listener.fileno()), *manners(settings), *uvicorn_options(settings)]
    return [
        _api_program(f"api {number}", command, environment, listener.fileno(), metrics, keep_open)
        for number in range(1, settings.workers + 1)
    ]


def _api_program(
    name: str,
    command: list[str],
    environment: Mapping[str, str],
    listener: int,
    metrics: Path,
    keep_open: tuple[int, ...],
) -> Program:
    return Program(
        name=name,
        command=command,
        environment=environment,
        grace_s=API_GRACE_S,
        keep_open=(listener, *keep_open),
        on_end=lambda pid: _forget_gauges(pid, metrics),
    )


def _uvicorn(listener: int) -> list[str]:
    return [
        *PYTHON,
        "-m",
        "uvicorn",
        APPLICATION,
        "--factory",
        f"--app-dir={PACKAGES}",
        f"--fd={listener}",
        "--log-level=warning",
        "--no-server-header",
        f"--timeout-graceful-shutdown={DRAIN_S}",
    ]


def manners(settings: Settings) -> list[str]:
    """How uvicorn is to speak, and how long it keeps a connection on which nobody does."""
    return [*PROTOCOLS, f"--timeout-keep-alive={settings.keep_alive_seconds}"]


def _forget_gauges(pid: int, metrics: Path) -> None:
    forget = cast(Callable[[int, str], None], mark_process_dead)
    forget(pid, str(metrics))


def sweeper_program(settings: Settings, keep_open: tuple[int, ...] = ()) -> Program:
    """The sweeper as a program to keep running."""
    return Program(
        name="sweeper",
        command=[*PYTHON, "-m", "api.cli", "sweep"],
        environment=child_environment(settings),
        keep_open=keep_open,
    )


def worker_program(settings: Settings, metrics: Path, keep_open: tuple[int, ...] = ()) -> Program:
    """The Spark worker as a program to keep running; its JVM is its own child, and ends with it."""
    return Program(
        name="worker",
        command=[*PYTHON, "-m", "api.cli", "worker"],
        environment=child_environment(settings, {METRICS_DIRECTORY: str(metrics)}),
        grace_s=WORKER_GRACE_S,
        keep_open=keep_open,
        on_end=lambda pid: _forget_gauges(pid, metrics),
    )


def deliverer_program(
    settings: Settings, metrics: Path, keep_open: tuple[int, ...] = ()
) -> Program:
    """A deliverer of webhooks as a program to keep running."""
    return Program(
        name="deliverer",
        command=[*PYTHON, "-m", "api.cli", "deliver"],
        environment=child_environment(settings, {METRICS_DIRECTORY: str(metrics)}),
        keep_open=keep_open,
        on_end=lambda pid: _forget_gauges(pid, metrics),
    )


def migrate_program(settings: Settings, keep_open: tuple[int, ...] = ()) -> Program:
    """`millstream migrate`, in a process of its own so that ours stays small."""
    return Program(
        name="migrate",
        command=[*PYTHON, "-m", "api.cli", "migrate"],
        environment=child_environment(settings),
        keep_open=keep_open,
    )


def first_key_program(settings: Settings, keep_open: tuple[int, ...] = ()) -> Program:
    """`millstream first-key`, which says the key of a new deployment's administrator, and says nothing in an old one."""
    return Program(
        name="first key",
        command=[*PYTHON, "-m", "api.cli", "first-key"],
        environment=child_environment(settings),
        keep_open=keep_open,
    )
