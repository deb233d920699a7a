"""A second deployment beside that of the run, which mirrors its streams, and the link between them."""

import asyncio
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

import httpx
import psycopg
import pytest

from consumers.mirrors.pull_times import MirrorTimes
from consumers.mirrors.runner import MirrorRunner
from storage.bootstrap import Storage, open_storage
from storage.concurrency.tasks import end
from storage.domain.names import MirrorName, StreamName
from storage.domain.streams.stream import ReadFrom
from storage.embedded.processes import child_setup
from storage.settings import StorageSettings
from tests.contract.conftest import deployment

ALLOW = ("127.0.0.1",)
QUICK = MirrorTimes(
    reload_ms=50, discovery_ms=100, wait_ms=500, report_ms=50, backoff_ms=20, groups_ms=50
)


class Link:
    """The network to the origin, which can be cut."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self.is_cut = False
        self.connections = 0
        self.url = ""

    def cut(self) -> None:
        """Abort every connection, in the middle of whatever it transfers, and refuse others."""
        self.is_cut = True
        self.abort()

    def abort(self) -> None:
        """Abort every connection; others may be made."""
        for writer in self._writers:
            writer.transport.abort()

    async def close(self) -> None:
        """Cut every connection, also those that are being made."""
        self.cut()
        await end(*self._serving)

    def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self.is_cut:
            writer.transport.abort()
            return
        self._writers.add(writer)
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.port)
        except BaseException:
            self._writers.discard(writer)
            writer.transport.abort()
            raise
        self._writers.add(far_writer)
        try:
            await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        except OSError:
            pass
        finally:
            self._writers -= {writer, far_writer}
            writer.transport.abort()
            far_writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(16_384):
        writer.write(data)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def running_link(url: str) -> AsyncGenerator[Link]:
    """Run a link to a deployment."""
    link = Link(httpx.URL(url).port or 0)
    server = await asyncio.start_server(link.serve, "127.0.0.1", 0)
    link.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield link
    finally:
        server.close()
        await link.close()


class Pullers:
    """Background processes of a deployment, as tasks."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._running: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start one."""
        runner = MirrorRunner(self._storage, ALLOW, times=QUICK)
        self._running.append(asyncio.create_task(runner.run()))

    async def stop(self) -> None:
        """Stop all."""
        running, self._running = self._running, []
        await end(*running)


@pytest.fixture(scope="session")
def copy_service(
    postgres_server_url: str, migrated_template: str
) -> Iterator[tuple[str, StorageSettings]]:
    """The deployment that mirrors; yields its URL and the settings of its stores."""
    with deployment(postgres_server_url, migrated_template, "mirroring") as actual_deployment:
        yield actual_deployment


@pytest.fixture
async def origin(service_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of the deployment that is mirrored."""
    async with httpx.AsyncClient(base_url=service_url, timeout=30) as client:
        yield client


@pytest.fixture
async def copy(copy_service: tuple[str, StorageSettings]) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of the deployment that mirrors."""
    async with httpx.AsyncClient(base_url=copy_service[0], timeout=30) as client:
        yield client


@pytest.fixture
async def copy_storage(copy_service: tuple[str, StorageSettings]) -> AsyncGenerator[Storage]:
    """The engines of the deployment that mirrors."""
    async with open_storage(copy_service[1]) as storage:
        yield storage


@pytest.fixture
async def pullers(copy_storage: Storage, mirrors: None) -> AsyncGenerator[Pullers]:
    """Background processes of the deployment that mirrors, of which one runs."""
    pullers = Pullers(copy_storage)
    pullers.start()
    yield pullers
    await pullers.stop()


@pytest.fixture
async def mirrors(copy_storage: Storage) -> AsyncGenerator[None]:
    """Delete the mirrors of the test."""
    yield
    for mirror in await copy_storage.mirrors.all():
        await copy_storage.mirrors.delete(mirror.name)


@pytest.fixture
async def link(service_url: str) -> AsyncGenerator[Link]:
    """The network between the two."""
    async with running_link(service_url) as link:
        yield link


@pytest.fixture
def put_mirror(copy: httpx.AsyncClient, link: Link):
    """Create a mirror of a stream."""

    async def put(stream: str, **fields):
        body = {"from": {"url": link.url}, "streams": [stream], **fields}
        answer = await copy.put(f"/v1/mirrors/{stream}", json=body)
        return answer.raise_for_status().json()

    return put


@pytest.fixture
def stream_name() -> str:
    """The name of a stream that neither deployment has."""
    return f"m{secrets.token_hex(6)}"


async def append(client: httpx.AsyncClient, stream: str, numbers: range, keys: int = 5) -> None:
    """Append records that are numbered, some of them without a key."""
    records = [
        {"data": str(number), **({"key": f"k{number % keys}"} if number % keys else {})}
        for number in numbers
    ]
    for first in range(0, len(records), 500):
        body = {"records": records[first : first + 500]}
        answer = await client.post(f"/v1/streams/{stream}/records", json=body)
        assert answer.raise_for_status().json()["failed"] == 0


async def numbers_by_key(storage: Storage, stream: str) -> dict[str, list[int]]:
    """Return the numbers of a stream's records by key, each shard in order, parents first."""
    found: dict[str, list[int]] = {}
    name = StreamName(stream)
    if stream not in [
        one.name.name for one in await storage.catalog.list_streams("default", prefix=stream)
    ]:
        return found
    for state in await storage.record_reader.shards(name):
        offset = state.start
        while offset < state.next:
            read = await storage.record_reader.read_shard(
                name, state.shard.index, ReadFrom(offset=offset), records_max=1000
            )
            for one in read.records:
                found.setdefault(one.record.key, []).append(int(one.record.data))
            offset = read.next_offset
    return found


async def progress(storage: Storage, mirror: str) -> list[tuple[int, int, bool]]:
    """Return (shard, next offset, ended) of the mirror's shards.

    `copied` does not count what a puller added and had not reported when it was stopped.
    """
    stored = await storage.mirrors.get(MirrorName(mirror))
    status = await storage.mirrors.status(stored)
    return [(one.shard, one.next_offset, one.ended) for one in status.shards]


def end_leases(database_url: str) -> None:
    """Let the leases of killed processes end, as they do after a while."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("update leases set expires_at_ms = 0 where name like 'mirror/%'")


def environment_of(settings: StorageSettings) -> dict[str, str]:
    """Return the environment of another process of a deployment."""
    return {
        "REDIS_URL": settings.redis_url,
        "DATABASE_URL": settings.database_url,
        "MILLSTREAM_ARCHIVE_URL": settings.archive_url or "",
        "MILLSTREAM_SECRET_KEYS": settings.secret_keys[0],
        "MILLSTREAM_WEBHOOK_ALLOW": "127.0.0.1",
    }


def background_process(settings: StorageSettings) -> subprocess.Popen[bytes]:
    """Start a background process of a deployment."""
    return subprocess.Popen(
        [sys.executable, "-m", "api.cli", "deliver"],
        env={**os.environ, **environment_of(settings)},
        preexec_fn=child_setup(signal.SIGKILL),
    )
