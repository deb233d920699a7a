"""The measured processes: private stores, API processes, and the echo server.

API and echo run under the same uvicorn command and listen in the same way, but the echo uses
uvicorn's own httptools protocol. All of them end with the benchmark, also when it is killed.
"""

import signal
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic, sleep

import redis

from api.cli.up.listener import listening
from api.cli.up.programs import APPLICATION, api_programs, background_program
from api.cli.up.readiness import readiness
from api.cli.up.supervisor import ProcessSpec
from api.config.settings import Settings, read_settings
from storage.embedded.postgres import running_postgres
from storage.embedded.processes import child_setup, open_log
from storage.embedded.servers import running
from storage.embedded.valkey import ValkeyServer
from storage.schema_version import migrate
from storage.settings import StorageSettings
from tests.bench.load import R_KEY, redis_benchmark
from tests.bench.payloads import BODY_BYTES
from tests.bench.ratios import Unmeasurable

R_ENTRIES_A_SECOND = 200_000  # entries requested per second of a round

_NOTHING: Mapping[str, str] = {}
START_S_MAX = 30.0
STOP_S_MAX = 10.0
REWRITE_S_MAX = 60.0
LATENCY_EVENT_MS = 5  # shorter ones are not listed
ECHO = "tests.bench.echo:create_app"
PLAIN_PROTOCOLS = {"--http=": "--http=httptools", "--ws=": "--ws=websockets-sansio"}


@dataclass(frozen=True, slots=True)
class Served:
    """An HTTP server: its port and its process id."""

    port: int
    pid: int

    @property
    def resident_bytes(self) -> int:
        """The memory of its process."""
        return resident_bytes(self.pid)


def resident_bytes(pid: int) -> int:
    """Return the memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


@dataclass(frozen=True, slots=True)
class House:
    """All running processes."""

    data: Path
    redis_url: str
    database_url: str
    valkey_socket: Path
    store: "redis.Redis"
    api: Served
    echo: Served

    @property
    def settings(self) -> Settings:
        """The environment of every process."""
        return _settings(self.data, self.redis_url, self.database_url)

    @property
    def storage(self) -> StorageSettings:
        """The addresses of its stores."""
        return self.settings.storage()

    def file(self, name: str, contents: bytes) -> str:
        """Return the path of a new file with these contents, for wrk."""
        path = self.data / name
        path.write_bytes(contents)
        return str(path)

    @contextmanager
    def fresh_api(self) -> Generator[Served]:
        """Start another API process on the same stores."""
        with _serving(APPLICATION, self.data, self.redis_url, self.database_url) as served:
            yield served

    @contextmanager
    def on_stores(self, redis_url: str, database_url: str) -> Generator["House"]:
        """Start another API process on other stores; yield the processes with these."""
        migrate(_settings(self.data, redis_url, database_url).storage())
        with _serving(APPLICATION, self.data, redis_url, database_url) as api:
            yield replace(self, redis_url=redis_url, database_url=database_url, api=api)

    @contextmanager
    def background(self) -> Generator[int]:
        """Start the process of the sweeper, which maintains the stores, and the deliverer; yield its pid."""
        program = background_program(self.settings, self.data / "metrics")
        process = _start(program, list(program.command), self.data / "logs" / "background.log")
        try:
            yield process.pid
        finally:
            _stop(process)

    @contextmanager
    def guarded_api(self, secret_keys: str) -> Generator[Served]:
        """Start another API process that requires credentials."""
        fields = {"auth": "keys", "secret_keys": secret_keys}
        with _serving(
            APPLICATION, self.data, self.redis_url, self.database_url, told=fields
        ) as served:
            yield served

    @contextmanager
    def fresh_echo(self) -> Generator[Served]:
        """Start another process of the reference."""
        with _serving(ECHO, self.data, self.redis_url, self.database_url, plain=True) as served:
            yield served

    def reference(self, seconds: int) -> float:
        """R, in entries per second: a round of some seconds, on a new key that is deleted then."""
        self.settle_store()
        try:
            return redis_benchmark(self.valkey_socket, R_ENTRIES_A_SECOND * seconds, BODY_BYTES)
        finally:
            self.store.delete(R_KEY)

    def settle_store(self) -> None:
        """Rewrite the append-only file now, rather than during a round."""
        self.store.bgrewriteaof()
        self.wait_for_rewrite()

    def wait_for_rewrite(self) -> None:
        """Wait until the append-only file is not being rewritten."""
        give_up_at = monotonic() + REWRITE_S_MAX
        while self._is_rewriting() and monotonic() < give_up_at:
            sleep(0.1)

    def _is_rewriting(self) -> bool:
        info = self.store.info("persistence")
        assert isinstance(info, dict)
        return bool(info["aof_rewrite_in_progress"] or info["aof_rewrite_scheduled"])

    def wait_for_freeing(self) -> None:
        """Wait until the store has freed deleted keys, which it does on its own thread."""
        give_up_at = monotonic() + REWRITE_S_MAX
        while self._pending_frees() and monotonic() < give_up_at:
            sleep(0.02)

    def _pending_frees(self) -> int:
        info = self.store.info("memory")
        assert isinstance(info, dict)
        return int(info["lazyfree_pending_objects"])

    def used_memory(self) -> int:
        """Bytes allocated by the store."""
        info = self.store.info("memory")
        assert isinstance(info, dict)
        return int(info["used_memory"])


@contextmanager
def house(data: Path) -> Generator[House]:
    """Start everything in the directory `data`, and end it afterwards."""
    valkey = ValkeyServer(data, durability="always")
    with (
        running(valkey) as redis_url,
        running_postgres(data) as database_url,
        redis.Redis(unix_socket_path=str(valkey.socket)) as store,
    ):
        store.config_set("auto-aof-rewrite-percentage", 0)  # see settle_store
        store.config_set("latency-monitor-threshold", LATENCY_EVENT_MS)
        migrate(_settings(data, redis_url, database_url).storage())
        with (
            _serving(APPLICATION, data, redis_url, database_url) as api,
            _serving(ECHO, data, redis_url, database_url, plain=True) as echo,
        ):
            yield House(data, redis_url, database_url, valkey.socket, store, api, echo)


def _settings(data: Path, redis_url: str, database_url: str, **told: str) -> Settings:
    return read_settings(
        data=data,
        redis_url=redis_url,
        database_url=database_url,
        archive_url=f"file://{data}/archive",
        workers=1,
        **told,
    )


@contextmanager
def _serving(
    application: str,
    data: Path,
    redis_url: str,
    database_url: str,
    *,
    plain: bool = False,
    told: Mapping[str, str] = _NOTHING,
) -> Generator[Served]:
    metrics = data / "metrics"
    metrics.mkdir(exist_ok=True)
    with listening("127.0.0.1", 0) as listener:
        settings = _settings(data, redis_url, database_url, **told)
        [program] = api_programs(settings, listener, metrics)
        process = _start(program, _command(program, application, plain), data / "logs" / "http.log")
        served = Served(listener.getsockname()[1], process.pid)
    try:
        _wait_until_ready(served, process, application)
        yield served
    finally:
        _stop(process)


def _command(program: ProcessSpec, application: str, plain: bool) -> list[str]:
    """The supervisor's command for the API, with another application or protocol."""
    words = [application if word == APPLICATION else word for word in program.command]
    assert application in words, "the supervisor starts the API in another way now"
    if plain:
        words = [
            next(
                (plain for word, plain in PLAIN_PROTOCOLS.items() if each_word.startswith(word)),
                each_word,
            )
            for each_word in words
        ]
        assert {*PLAIN_PROTOCOLS.values()} <= {*words}, (
            "the supervisor starts the API in another way now"
        )
    return words


def _start(program: ProcessSpec, command: list[str], log: Path) -> "subprocess.Popen[bytes]":
    with open_log(log) as output:
        return subprocess.Popen(
            command,
            env=program.environment,
            pass_fds=program.keep_open,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=child_setup(signal.SIGKILL),
        )


def _wait_until_ready(served: Served, process: "subprocess.Popen[bytes]", what: str) -> None:
    url = f"http://127.0.0.1:{served.port}"
    give_up_at = monotonic() + START_S_MAX
    while said := readiness(url):
        if process.poll() is not None or monotonic() > give_up_at:
            raise Unmeasurable(f"{what} did not start: {said}")
        sleep(0.05)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
