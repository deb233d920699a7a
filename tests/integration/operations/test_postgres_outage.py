"""An outage of Postgres is outlived: what is known serves, and what was taken away does not."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import psycopg
import pytest
import redis

from consumers.maintenance.tasks.queues import sweep_due_queues
from consumers.maintenance.tasks.retention import trim_streams
from storage.bootstrap import Storage, open_storage
from storage.domain import limits
from storage.domain.access.credentials import CredentialRequest, Rights, parse_key
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR, Role
from storage.domain.clock import ManualClock
from storage.domain.errors import StorageUnavailable
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.queue import QueueSpec
from storage.domain.quotas import Quotas
from storage.domain.streams.stream import ReadFrom, StreamSpec
from storage.embedded.postgres import PostgresServer
from storage.embedded.processes import stop
from storage.embedded.servers import start
from storage.postgres.migrate import migrate
from storage.redis.keys import STORE_KEY
from storage.settings import StorageSettings
from tests.conditions import eventually
from tests.databases import cut_off, nobody_connects
from tests.folders import quick_folder

pytestmark = pytest.mark.one_store

ORDERS = QueueName("orders")
VIEWED = QueueName("viewed")
UNUSED = QueueName("unused")
CLICKS = StreamName("clicks")
NEW = QueueName("new")
NEVER_RECEIVED = QueueName("never-received")
OLD_MS = 2 * limits.DEFINITION_AGE_MS_MAX


@pytest.fixture
def open_process(redis_url: str, database_url: str, clock: ManualClock):
    """Open storage as one process of the deployment does."""

    def opened(url: str = database_url, grace_ms: int = limits.POSTGRES_GRACE_MS):
        settings = StorageSettings(
            redis_url=redis_url, database_url=url, postgres_grace_ms=grace_ms
        )
        return open_storage(settings, clock=clock)

    return opened


@pytest.fixture
async def storage(open_process) -> AsyncIterator[Storage]:
    async with open_process() as storage:
        yield storage


@pytest.fixture
def store(redis_url: str) -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(redis_url) as client:
        yield client


def version_in_store(store: "redis.Redis") -> int:
    return int(store.hget(STORE_KEY, "catalog") or 0)


def version_in_postgres(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("select version from catalog_version").fetchone()
        assert row is not None
        return int(row[0])


async def key_of(storage: Storage) -> str:
    request = CredentialRequest(name="ada", rights=Rights(roles=(Role.ADMIN,)))
    _, secret = await storage.credentials.create(LOCAL_ADMINISTRATOR, request)
    return secret.token


async def use_everything(storage: Storage, token: str) -> None:
    """Send, receive, acknowledge, append and read, by an authenticated caller."""
    credential = await storage.credentials.authenticate(token)
    assert credential is not None
    for queue in (ORDERS, VIEWED):
        await storage.queues.send(queue, [NewMessage(b"x")])
        [message] = await storage.queues.receive(queue)
        done = Settlement(message.receipt_handle, SettleAction.ACK)
        await storage.queues.settle(queue, [done])
    await storage.streams.append(CLICKS, [Record(b"x")])
    for stream in (CLICKS, StreamName(VIEWED.name)):
        read = await storage.record_reader.read_shard(stream, 0, ReadFrom(offset=0))
        assert read.records


async def define(storage: Storage) -> str:
    """Create all that `use_everything` needs, and two queues that nobody uses."""
    for name in (ORDERS, UNUSED):
        await storage.catalog.put_queue(name, QueueSpec())
    await storage.catalog.put_queue(VIEWED, QueueSpec(stream_view=True))
    await storage.catalog.put_stream(CLICKS, StreamSpec())
    return await key_of(storage)


def is_warm(storage: Storage, *names: QueueName) -> Callable[[], Awaitable[bool]]:
    async def read() -> bool:
        return all(storage.catalog.cached_queue(name) is not None for name in names)

    return read


def has_warm_key(storage: Storage, token: str) -> Callable[[], Awaitable[bool]]:
    key_id, _ = parse_key(token) or ("", "")

    async def read() -> bool:
        return storage.credentials.cached(key_id) is not None

    return read


def is_vouched(storage: Storage) -> Callable[[], Awaitable[bool]]:
    async def read() -> bool:
        return storage.health.is_postgres_away

    return read


async def next_answer(storage: Storage) -> None:
    """Wait until the hot store was asked again, twice: one question may have been on its way."""
    listener, answers = storage.health._listener, 0
    read_version = listener._read_version
    assert read_version is not None

    async def count() -> int:
        nonlocal answers
        version = await read_version()
        answers += 1
        return version

    async def is_answered() -> bool:
        return answers >= 2

    listener._read_version = count
    await eventually(is_answered, True)


async def test_calls_go_on_while_postgres_is_stopped(redis_url, clock):
    """Everything had answered 503 from the sixth second of an outage on."""
    with quick_folder("outage") as folder:
        server = PostgresServer(folder, fsync=False)
        server.prepare()
        process = start(server)
        try:
            server.wait_ready(alive=lambda: process.poll() is None)
            migrate(server.url)
            settings = StorageSettings(redis_url=redis_url, database_url=server.url)
            async with open_storage(settings, clock=clock) as storage:
                token = await define(storage)
                await use_everything(storage, token)
                await storage.catalog.put_queue(UNUSED, QueueSpec())
                rarely = await key_of(storage)
                await eventually(is_warm(storage, ORDERS, VIEWED, UNUSED), True)
                await eventually(has_warm_key(storage, rarely), True)
                await storage.catalog.put_queue(NEVER_RECEIVED, QueueSpec())
                await storage.queues.send(NEVER_RECEIVED, [NewMessage(b"late", delay_ms=1_000)])
                await storage.catalog.all_queues()
                await storage.catalog.all_streams()

                stop(process, server.stop_signal)
                await eventually(is_vouched(storage), True)
                swept = 0
                for _ in range(12):
                    clock.advance(ms=limits.POSTGRES_GRACE_MS // 12)
                    await use_everything(storage, token)
                    swept += await sweep_due_queues.work(storage) or 0
                    await trim_streams.work(storage)

                assert swept > 0
                assert (await storage.catalog.queue(UNUSED)).name == UNUSED
                assert await storage.credentials.authenticate(rarely) is not None
                assert (await storage.health.check())["postgres"] == "away, serving what is known"
                with pytest.raises(StorageUnavailable):
                    await storage.queues.send(UNUSED, [NewMessage(b"its log is not made yet")])
                with pytest.raises(StorageUnavailable):
                    await storage.catalog.queue(NEW)

                process = start(server)
                server.wait_ready(alive=lambda: process.poll() is None)
                await eventually(is_vouched(storage), False)
                await storage.queues.send(UNUSED, [NewMessage(b"now it is")])
                await use_everything(storage, token)
                assert (await storage.health.check())["postgres"] == "ok"
        finally:
            stop(process, server.stop_signal)


async def _revoke(storage: Storage, token: str) -> None:
    credential = await storage.credentials.authenticate(token)
    assert credential is not None
    await storage.credentials.revoke(LOCAL_ADMINISTRATOR, credential.id)


async def _delete(storage: Storage, _: str) -> None:
    await storage.catalog.delete_queue(ORDERS)


@pytest.mark.parametrize("take_away", [_revoke, _delete])
async def test_process_alone_cut_off_forgets_when_something_is_taken_away(
    open_process, storage, lonely_url, database_url, take_away
):
    token = await define(storage)
    async with open_process(lonely_url) as lonely:
        await use_everything(lonely, token)
        with cut_off(database_url, "lonely"):
            await eventually(is_vouched(lonely), True)
            await use_everything(lonely, token)
            await storage.catalog.put_queue(NEW, QueueSpec())  # takes nothing away
            await next_answer(lonely)
            await use_everything(lonely, token)

            await take_away(storage, token)

            await eventually(is_vouched(lonely), False, within_s=5)
            with pytest.raises(StorageUnavailable):
                await lonely.credentials.authenticate(token)
            with pytest.raises(StorageUnavailable):
                await lonely.queues.receive(ORDERS)


async def test_caches_are_forgotten_when_grace_ends(open_process, database_url):
    async with open_process(grace_ms=500) as storage:
        token = await define(storage)
        await use_everything(storage, token)
        with nobody_connects(database_url):
            await eventually(is_vouched(storage), True)

            await eventually(is_vouched(storage), False)

            with pytest.raises(StorageUnavailable):
                await storage.credentials.authenticate(token)


async def test_caches_are_forgotten_when_store_is_silent_too(storage, database_url, monkeypatch):
    monkeypatch.setattr("storage.postgres.listener._GRACE_SECONDS", 1.0)

    async def fail() -> int:
        raise StorageUnavailable

    token = await define(storage)
    await use_everything(storage, token)
    storage.health._listener._read_version = fail
    with nobody_connects(database_url):
        await eventually(is_vouched(storage), True)

        await eventually(is_vouched(storage), False)

        with pytest.raises(StorageUnavailable):
            await storage.credentials.authenticate(token)


async def test_refused_change_leaves_what_is_known(storage, database_url, clock):
    token = await define(storage)
    await use_everything(storage, token)
    with nobody_connects(database_url):
        await eventually(is_vouched(storage), True)
        with pytest.raises(StorageUnavailable):
            await storage.catalog.put_queue(ORDERS, QueueSpec(delay_ms=1))
        with pytest.raises(StorageUnavailable):
            await _revoke(storage, token)
        clock.advance(OLD_MS)

        await use_everything(storage, token)


async def _pause(storage: Storage, _: str) -> None:
    await storage.catalog.pause_queue(ORDERS, paused=True)


async def _change(storage: Storage, _: str) -> None:
    await storage.catalog.put_queue(ORDERS, QueueSpec(delay_ms=1))


async def _reshard(storage: Storage, _: str) -> None:
    await storage.catalog.set_shard_target(CLICKS, 2)


async def _delete_stream(storage: Storage, _: str) -> None:
    await storage.catalog.delete_stream(CLICKS)


async def _limit(storage: Storage, _: str) -> None:
    await storage.namespaces.put("default", Quotas(queues_max=1))


async def _log_out(storage: Storage, token: str) -> None:
    session = await storage.credentials.log_in(token)
    assert session is not None
    await storage.credentials.log_out(session.token)


async def _narrow(storage: Storage, token: str) -> None:
    credential = await storage.credentials.authenticate(token)
    assert credential is not None
    await storage.credentials.change(
        LOCAL_ADMINISTRATOR, credential.id, lambda _: Rights(roles=(Role.VIEWER,))
    )


@pytest.mark.parametrize(
    "take_away",
    [_revoke, _narrow, _log_out, _delete, _pause, _change, _reshard, _delete_stream, _limit],
)
async def test_each_change_raises_both_versions(storage, store, database_url, take_away):
    token = await define(storage)
    before = version_in_store(store)

    await take_away(storage, token)

    assert version_in_store(store) == version_in_postgres(database_url) == before + 1


async def test_insertions_do_not_raise_version(storage, store):
    before = version_in_store(store)

    await define(storage)

    assert version_in_store(store) == before


async def test_concurrent_changes_leave_equal_versions(open_process, store, database_url):
    async with open_process() as one, open_process() as other:
        names = [QueueName(f"queue-{number}") for number in range(10)]
        for name in names:
            await one.catalog.put_queue(name, QueueSpec())

        await asyncio.gather(
            *(
                storage.catalog.put_queue(name, QueueSpec(delay_ms=delay_ms))
                for name in names
                for delay_ms, storage in ((1, one), (2, other))
            )
        )

    assert version_in_store(store) == version_in_postgres(database_url) == 2 * len(names)


@pytest.mark.parametrize("missing", [-3, 3])
async def test_sweeper_levels_versions(storage, store, database_url, missing):
    """A change was given up after the first store, or the first store has lost some."""
    await define(storage)
    for _ in range(5):
        await _pause(storage, "")
        await storage.catalog.pause_queue(ORDERS, paused=False)
    store.hincrby(STORE_KEY, "catalog", -missing)

    await storage.maintenance.advance_marker()

    versions = version_in_store(store), version_in_postgres(database_url)
    assert versions == (10 - min(missing, 0), 10 - min(missing, 0))


async def test_change_after_store_lost_version_is_above_it(storage, store, database_url):
    await define(storage)
    await _pause(storage, "")
    await _change(storage, "")
    store.delete(STORE_KEY)

    await _delete(storage, "")

    assert version_in_store(store) == version_in_postgres(database_url) == 3


async def test_change_goes_on_while_store_is_away(database_url, clock):
    settings = StorageSettings(redis_url="redis://127.0.0.1:1", database_url=database_url)
    async with open_storage(settings, clock=clock) as storage:
        await storage.catalog.put_queue(ORDERS, QueueSpec())

        await _pause(storage, "")

    assert version_in_postgres(database_url) == 1
