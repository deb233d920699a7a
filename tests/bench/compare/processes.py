"""Processes of the contenders, on their own ports, with data in the folder of the run."""

import os
import signal
import socket
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from time import monotonic, sleep

from storage.embedded.postgres import PostgresServer
from storage.embedded.processes import child_setup, open_log
from storage.embedded.servers import running
from storage.embedded.valkey import ValkeyServer
from storage.settings import Durability
from tests.bench.compare import programs
from tests.bench.ratios import Unmeasurable

START_S_MAX, STOP_S_MAX, ANSWER_S_MAX = 90.0, 15.0, 120.0
KAFKA_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
_NOTHING: Mapping[str, str] = {}


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as each_socket:
        each_socket.bind(("127.0.0.1", 0))
        return int(each_socket.getsockname()[1])


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


@dataclass(frozen=True, slots=True)
class RabbitUrls:
    """Addresses of one node, by protocol."""

    amqp: str
    stream: str


@contextmanager
def rabbitmq(data: Path) -> Generator[RabbitUrls]:
    """Run one node with streams."""
    port, stream_port, epmd = free_port(), free_port(), free_port()
    config, plugins = data / "rabbitmq.conf", data / "plugins"
    config.write_text(
        f"listeners.tcp.1 = 127.0.0.1:{port}\n"
        f"stream.listeners.tcp.1 = 127.0.0.1:{stream_port}\n"
        f"stream.advertised_host = 127.0.0.1\nstream.advertised_port = {stream_port}\n"
    )
    plugins.write_text("[rabbitmq_stream].\n")
    fields = {
        "HOME": str(data),
        "RABBITMQ_NODENAME": "compare@localhost",
        "RABBITMQ_CONFIG_FILE": str(config),
        "RABBITMQ_MNESIA_BASE": str(data / "mnesia"),
        "RABBITMQ_LOG_BASE": str(data / "rabbitmq-logs"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "ERL_EPMD_PORT": str(epmd),
    }
    try:
        with _running([str(programs.rabbitmq())], data, stream_port, fields):
            sleep(2.0)  # it listens for a while before it accepts clients
            yield RabbitUrls(
                f"amqp://guest:guest@127.0.0.1:{port}/",
                f"rabbitmq-stream://guest:guest@127.0.0.1:{stream_port}/",
            )
    finally:
        with suppress(OSError, subprocess.SubprocessError):
            command = ["epmd", "-port", str(epmd), "-kill"]
            subprocess.run(command, capture_output=True, timeout=10, check=False)


@contextmanager
def kafka(data: Path, flush_messages: int = 0) -> Generator[str]:
    """Run one node in KRaft mode; `flush_messages`: messages for each fsync, or the default."""
    port, controller = free_port(), free_port()
    config = data / "kafka.properties"
    config.write_text(
        "process.roles=broker,controller\nnode.id=1\n"
        f"controller.quorum.voters=1@127.0.0.1:{controller}\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n"
        f"log.dirs={data}/kafka\noffsets.topic.replication.factor=1\n"
        "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
        "group.initial.rebalance.delay.ms=0\n"  # as in Kafka's own configuration of one node
        + (f"log.flush.interval.messages={flush_messages}\n" if flush_messages else "")
    )
    java = [*programs.kafka()[:1], "-Xms1g", "-Xmx1g", *programs.kafka()[1:]]
    words = ["format", "--cluster-id", KAFKA_CLUSTER, "--config", str(config)]
    formatting = [*java, "kafka.tools.StorageTool", *words]
    done = subprocess.run(formatting, cwd=data, capture_output=True, timeout=60, check=False)
    if done.returncode:
        raise Unmeasurable(f"Kafka's storage was not formatted: {done.stderr[-200:]!r}")
    with _running([*java, "kafka.Kafka", str(config)], data, port):
        sleep(2.0)  # it listens before it is registered with its controller
        yield f"127.0.0.1:{port}"


class Dialogue:
    """A program that answers each line with a line."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.pid = process.pid
        self._process = process

    def ask(self, *words: object) -> str:
        """Return its answer; raises Unmeasurable if it ends, or gives none in time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        timer = Timer(ANSWER_S_MAX, self._process.kill)
        timer.start()
        try:
            self._process.stdin.write(f"{' '.join(map(str, words))}\n".encode())
            self._process.stdin.flush()
            answer = self._process.stdout.readline().decode().strip()
        except BrokenPipeError:
            answer = ""
        finally:
            timer.cancel()
        if not answer:
            raise Unmeasurable(f"{words[0]} was not answered")
        return answer


@contextmanager
def clicks_program(data: Path, *words: str) -> Generator[Dialogue]:
    """Run our program of Kafka Streams."""
    java, *options = programs.kafka_streams()
    log = data / "logs" / f"clicks-{words[0]}.log"
    log.parent.mkdir(exist_ok=True)
    with open_log(log) as output:
        process = subprocess.Popen(
            [java, "-Xmx1g", *options, "Clicks", *words],
            cwd=data,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            start_new_session=True,
            preexec_fn=child_setup(signal.SIGKILL),
        )
    try:
        yield Dialogue(process)
    finally:
        _end(process)


@contextmanager
def redis_streams(data: Path, fsync: Durability) -> Generator[str]:
    """Run Millstream's Valkey alone."""
    with running(ValkeyServer(data, durability=fsync)) as url:
        yield url


class QueuePostgres(PostgresServer):
    """The Postgres that Millstream starts, with memory for tables that are used much."""

    def command(self) -> list[str]:
        return [*super().command(), "-c", "shared_buffers=512MB", "-c", "max_wal_size=4GB"]


@contextmanager
def postgres(data: Path) -> Generator[str]:
    """Run Postgres with its defaults of durability."""
    with running(QueuePostgres(data)) as url:
        yield url


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
