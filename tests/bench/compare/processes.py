"""Processes of the contenders, on their own ports, with data in the folder of the run."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

from storage.embedded.processes import child_setup, open_log
from tests.bench.compare import programs
from tests.bench.ratios import Unmeasurable

START_S_MAX, STOP_S_MAX = 90.0, 15.0
_NOTHING: Mapping[str, str] = {}


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as each_socket:
        each_socket.bind(("127.0.0.1", 0))
        return int(each_socket.getsockname()[1])


@contextmanager
def moto(data: Path) -> Generator[int]:
    """moto's server, from the development dependencies; keeps everything in memory."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with _running(command, data, port):
        yield port


@contextmanager
def kinesalite(data: Path) -> Generator[int]:
    """Run with LevelDB, which does not sync writes."""
    port = free_port()
    words = ["--port", str(port), "--path", str(data / "kinesalite"), "--createStreamMs", "10"]
    with _running([*programs.kinesalite(), *words], data, port):
        yield port


@contextmanager
def elasticmq(data: Path) -> Generator[int]:
    """Run in memory, as configured by default."""
    port = free_port()
    config = data / "elasticmq.conf"
    config.write_text(
        f'include classpath("application.conf")\n'
        f'node-address {{ protocol = http, host = "127.0.0.1", port = {port}, context-path = "" }}\n'
        f'rest-sqs {{ enabled = true, bind-port = {port}, bind-hostname = "127.0.0.1" }}\n'
        "rest-stats { enabled = false }\n"
    )
    java, *words = programs.elasticmq()
    command = [java, f"-Dconfig.file={config}", *words, "org.elasticmq.server.Main"]
    with _running(command, data, port):
        yield port


@contextmanager
def rabbitmq(data: Path) -> Generator[str]:
    """Run one node, and yield its URL."""
    port, epmd = free_port(), free_port()
    config = data / "rabbitmq.conf"
    config.write_text(f"listeners.tcp.1 = 127.0.0.1:{port}\n")
    fields = {
        "HOME": str(data),
        "RABBITMQ_NODENAME": "compare@localhost",
        "RABBITMQ_CONFIG_FILE": str(config),
        "RABBITMQ_MNESIA_BASE": str(data / "mnesia"),
        "RABBITMQ_LOG_BASE": str(data / "rabbitmq-logs"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(data / "plugins"),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "ERL_EPMD_PORT": str(epmd),
    }
    try:
        with _running([str(programs.rabbitmq())], data, port, fields):
            sleep(2.0)  # it listens for a while before it accepts clients
            yield f"amqp://guest:guest@127.0.0.1:{port}/"
    finally:
        with suppress(OSError, subprocess.SubprocessError):
            command = ["epmd", "-port", str(epmd), "-kill"]
            subprocess.run(command, capture_output=True, timeout=10, check=False)


@contextmanager
def nats(data: Path, program: Path, sync: str = "") -> Generator[str]:
    """Run one node with JetStream; `sync`: its sync_interval, or the default."""
    port, folder = free_port(), data / f"nats-{sync or 'default'}"
    folder.mkdir()
    interval = f", sync_interval: {sync}" if sync else ""
    config = folder / "nats.conf"
    config.write_text(
        f'host: 127.0.0.1\nport: {port}\njetstream {{ store_dir: "{folder}"{interval} }}\n'
    )
    with _running([str(program), "-c", str(config)], data, port):
        yield f"nats://127.0.0.1:{port}"


@contextmanager
def _running(
    command: Sequence[str], data: Path, port: int, environment: Mapping[str, str] = _NOTHING
) -> Generator[None]:
    log = data / "logs" / f"{Path(command[0]).name}.log"
    log.parent.mkdir(exist_ok=True)
    with open_log(log) as output:
        process = subprocess.Popen(
            command,
            cwd=data,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=child_setup(signal.SIGKILL),
        )
    try:
        _wait_until_open(process, port, Path(command[0]).name)
        yield
    finally:
        _end(process)


def _wait_until_open(process: "subprocess.Popen[bytes]", port: int, name: str) -> None:
    give_up_at = monotonic() + START_S_MAX
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if process.poll() is not None or monotonic() > give_up_at:
            raise Unmeasurable(f"{name} did not start")
        sleep(0.2)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the whole session: some start child processes."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S_MAX)
            if how is signal.SIGKILL:
                return
