"""One real service for the run, over its own stores, tested over the network."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count

import httpx
import msgspec
import psycopg
import pytest
from redis import Redis

from api.cli.up.programs import APPLICATION, uvicorn_protocol_options
from api.config.settings import Settings
from storage.access.secret_box import new_key
from storage.domain.clock import SystemClock
from storage.domain.presence import ProcessRole, ProcessSeen, SocketSeen
from storage.domain.webhooks import Payload
from storage.embedded.processes import child_setup
from storage.embedded.valkey import running_valkey
from storage.redis.keys import presence_keys
from storage.settings import StorageSettings
from tests.folders import quick_folder
from tests.view_worker import view_worker_process

START_SECONDS_MAX = 90
SECRET_KEY = new_key()

_numbers = count(1)


@pytest.fixture(scope="session")
def service(
    postgres_server_url: str, migrated_template: str
) -> Iterator[tuple[str, StorageSettings]]:
    """A service of one process; yields its URL and the settings of its stores."""
    with deployment(postgres_server_url, migrated_template, "contract") as actual_deployment:
        yield actual_deployment


@pytest.fixture(scope="session")
def service_url(service: tuple[str, StorageSettings]) -> str:
    """The URL of the service."""
    return service[0]


@pytest.fixture(scope="session")
def service_database_url(service: tuple[str, StorageSettings]) -> str:
    """The database of the service."""
    return service[1].database_url


@contextmanager
def deployment(
    postgres_server_url: str, template: str, name: str
) -> Iterator[tuple[str, StorageSettings]]:
    """Run a service with its own stores and archive; yields its URL and their settings."""
    with psycopg.connect(postgres_server_url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE {name} TEMPLATE "{template}"'.encode())
    database_url = postgres_server_url.replace("/millstream", f"/{name}", 1)
    with (
        quick_folder(name) as data,
        running_valkey(data) as redis_url,
    ):
        archive_url = f"file://{data}/archive"
        environment = {
            "REDIS_URL": redis_url,
            "DATABASE_URL": database_url,
            "MILLSTREAM_ARCHIVE_URL": archive_url,
            "MILLSTREAM_SECRET_KEYS": SECRET_KEY,
            "MILLSTREAM_WEBHOOK_ALLOW": "127.0.0.1",
        }
        with running_service(environment) as (url, _):
            yield (
                url,
                StorageSettings(
                    redis_url=redis_url,
                    database_url=database_url,
                    archive_url=archive_url,
                    secret_keys=(SECRET_KEY,),
                    webhook_allow=("127.0.0.1",),
                ),
            )


@contextmanager
def running_service(
    environment: Mapping[str, str],
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run a process of a service; yields its URL and the process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        command = [sys.executable, "-m", "uvicorn", APPLICATION, "--factory"]
        process = subprocess.Popen(
            [*command, f"--fd={listener.fileno()}", *uvicorn_protocol_options(Settings())],
            env={**os.environ, **environment},
            pass_fds=[listener.fileno()],
            preexec_fn=child_setup(signal.SIGKILL),
        )
    try:
        _wait_until_ready(url)
        yield url, process
    finally:
        process.terminate()
        process.wait(START_SECONDS_MAX)


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=START_SECONDS_MAX).status_code == 200
    except httpx.TransportError:
        return False


def _wait_until_ready(url: str) -> None:
    give_up_at = time.monotonic() + START_SECONDS_MAX
    while not _is_ready(url):
        assert time.monotonic() < give_up_at, "the service did not become ready"
        time.sleep(0.05)


@pytest.fixture(scope="session")
def client(service_url: str) -> Iterator[httpx.Client]:
    """An HTTP client of the service."""
    with httpx.Client(base_url=service_url, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def view_worker(service: tuple[str, StorageSettings]) -> Iterator[None]:
    """A worker of views for the service, without Spark. Other modules test what happens without one."""
    with view_worker_process(service[1]):
        yield


@pytest.fixture
def make_job(service_database_url: str) -> Callable[..., None]:
    """Store a failed job with a part; no API submits jobs on their own."""

    def make(job_id: str, subject: str, namespace: str = "default") -> None:
        with psycopg.connect(service_database_url) as connection:
            connection.execute(
                "insert into namespaces values (%s, %s) on conflict do nothing",
                (namespace, f"{next(_numbers):012}"),
            )
            connection.execute(
                "insert into jobs values (%s, %s, 'archive', %s, '{}', 'failed', 'none', 10, 10, 10,"
                " 1, 'w', null, '{\"files\": 12}', 'no', 1, 1, 2)",
                (job_id, namespace, subject),
            )
            connection.execute(
                "insert into job_parts values (%s, '0', 5000, false, '{\"records\": 5000}')",
                (job_id,),
            )

    return make


@pytest.fixture
def log_delivery(service_database_url: str) -> Callable[[str, str], None]:
    """Log a delivery of a webhook, with its payload."""

    def log(webhook: str, event_id: str) -> None:
        payload = msgspec.msgpack.encode(Payload(b"hello", "", ()))
        with psycopg.connect(service_database_url) as connection:
            connection.execute(
                "insert into webhook_deliveries select webhook_id, %s, 'delivered', 1, '[]', 1, 1, null,"
                " 9e15, null, 7, 1, '', '', %s from webhooks where name = %s",
                (event_id, payload, webhook),
            )

    return log


@pytest.fixture
def show_socket(service: tuple[str, StorageSettings]) -> Iterator[Callable[[str], None]]:
    """Register a socket of a process that does not exist."""
    process, now = "walked", SystemClock()

    def show(socket_id: str) -> None:
        seen = ProcessSeen(
            id=process, role=ProcessRole.API, host="h", pid=1, version="0", started_at_ms=1
        )
        socket = SocketSeen(
            id=socket_id,
            process=process,
            principal="shop",
            namespace="default",
            address="",
            protocol="",
            connected_at_ms=1,
            queued_bytes=0,
        )
        seen_key, sockets_key, _ = presence_keys()
        said = b"%d %s" % (now.now_ms(), msgspec.msgpack.encode(seen))
        with Redis.from_url(service[1].redis_url) as redis:
            redis.hset(seen_key, process, said)
            redis.hset(sockets_key, process, msgspec.msgpack.encode([socket]))

    yield show
    with Redis.from_url(service[1].redis_url) as redis:
        for key in presence_keys():
            redis.hdel(key, process)


@pytest.fixture
def fail_job(service_database_url: str) -> Callable[[str], None]:
    """Set a job to failed."""

    def fail(job_id: str) -> None:
        with psycopg.connect(service_database_url) as connection:
            connection.execute(
                "update jobs set state = 'failed', failure = 'no', ended_at_ms = 2 where job_id = %s",
                (job_id,),
            )

    return fail


@pytest.fixture
def queue(client: httpx.Client) -> str:
    """The path of a new standard queue."""
    path = f"/v1/queues/queue-{next(_numbers)}"
    client.put(path).raise_for_status()
    return path


@pytest.fixture
def fifo_queue(client: httpx.Client) -> str:
    """The path of a new FIFO queue."""
    path = f"/v1/queues/fifo-{next(_numbers)}"
    client.put(path, json={"type": "fifo"}).raise_for_status()
    return path


@pytest.fixture
def stream(client: httpx.Client) -> str:
    """The path of a new stream of two shards."""
    path = f"/v1/streams/stream-{next(_numbers)}"
    client.put(path, json={"shards": 2}).raise_for_status()
    return path


@pytest.fixture
def name() -> str:
    """A name that is not in use."""
    return f"new-{next(_numbers)}"
