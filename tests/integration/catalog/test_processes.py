"""Changes reach other processes, and caches survive a short database outage."""

import asyncio

import psycopg
import pytest

from storage.catalog.catalog import Catalog, open_catalog
from storage.domain.errors import StorageUnavailable, StreamNotFound
from storage.domain.limits import DEFINITION_AGE_MS_MAX, DEFINITION_REPLICA_AGE_MS_MAX
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec
from storage.postgres.database import open_database
from storage.postgres.listener import Listener
from storage.settings import StorageSettings
from tests.conditions import PATIENCE_S, eventually
from tests.databases import nobody_connects
from tests.integration.catalog.definitions import CLICKS, ORDERS


async def test_change_reaches_other_process(catalog, other):
    await catalog.put_queue(ORDERS, QueueSpec())
    await other.queue(ORDERS)

    changed, *_ = await catalog.put_queue(ORDERS, QueueSpec(delay_ms=1))

    await eventually(lambda: other.queue(ORDERS), changed)


async def test_deletion_reaches_other_process(catalog, other):
    await catalog.put_stream(CLICKS, StreamSpec())
    await other.stream(CLICKS)

    await catalog.delete_stream(CLICKS)

    with pytest.raises(StreamNotFound):
        await eventually(lambda: other.stream(CLICKS), None)


async def test_definition_is_cached(catalog, database_url):
    created, *_ = await catalog.put_queue(ORDERS, QueueSpec())
    await eventually(lambda: is_cached(catalog, ORDERS), True)

    change_without_notification(database_url)

    assert await catalog.queue(ORDERS) == created
    assert (await catalog.fresh_queue(ORDERS)).version == 99


async def test_definition_and_its_replica_are_one_object(catalog, clock):
    """A replica that is read before the cache becomes one with it when it is read again."""
    await catalog.put_stream(CLICKS, StreamSpec())
    await catalog.all_streams()

    async def is_one_object() -> bool:
        clock.advance(ms=DEFINITION_REPLICA_AGE_MS_MAX)
        replica = (await catalog.all_streams())[CLICKS]
        return replica is await catalog.fresh_stream(CLICKS)

    await eventually(is_one_object, True)  # its announcement may still come


async def test_equal_specifications_are_one_object(catalog):
    spec = StreamSpec(tags={"team": "web"})
    for name in ("views", "sales"):
        await catalog.put_stream(StreamName(name), spec)

    views, sales = [await catalog.stream(StreamName(name)) for name in ("views", "sales")]

    assert views.spec == spec
    assert views.spec is sales.spec


async def test_missed_change_is_seen_after_one_minute(catalog, clock, database_url):
    await catalog.put_queue(ORDERS, QueueSpec())
    await eventually(lambda: is_cached(catalog, ORDERS), True)
    change_without_notification(database_url)

    clock.advance(ms=DEFINITION_AGE_MS_MAX)

    assert (await catalog.queue(ORDERS)).version == 99


async def test_losing_listen_connection_clears_cache(catalog, database_url):
    await catalog.put_queue(ORDERS, QueueSpec())
    await eventually(lambda: is_cached(catalog, ORDERS), True)
    change_without_notification(database_url)

    end_listeners(database_url)

    await eventually(lambda: version_of(catalog, ORDERS), 99)


async def test_cached_definitions_survive_short_database_outage(
    catalog, other, database_url, monkeypatch
):
    monkeypatch.setattr("storage.postgres.listener._GRACE_SECONDS", 60.0)
    created, *_ = await catalog.put_queue(ORDERS, QueueSpec())
    await receive_announcements(catalog, other)
    await eventually(lambda: is_cached(catalog, ORDERS), True)

    with nobody_connects(database_url):
        await asyncio.sleep(0.2)  # the loss of the connection is noticed
        queue = await catalog.queue(ORDERS)

    assert queue == created


async def test_cached_definitions_expire_in_long_database_outage(
    catalog, database_url, monkeypatch
):
    monkeypatch.setattr("storage.postgres.listener._GRACE_SECONDS", 0.1)
    await catalog.put_queue(ORDERS, QueueSpec())
    await eventually(lambda: is_cached(catalog, ORDERS), True)

    with nobody_connects(database_url), pytest.raises(StorageUnavailable):
        await eventually(lambda: catalog.queue(ORDERS), None)

    await eventually(lambda: is_cached(catalog, ORDERS), True)


async def test_listen_connection_and_cache_recover(catalog, other, database_url):
    await catalog.put_queue(ORDERS, QueueSpec())
    end_listeners(database_url)
    await eventually(lambda: is_cached(other, ORDERS), True)

    changed, *_ = await catalog.put_queue(ORDERS, QueueSpec(delay_ms=1))

    await eventually(lambda: other.queue(ORDERS), changed)


async def test_fields_of_later_version_are_ignored(catalog, database_url):
    created, *_ = await catalog.put_queue(ORDERS, QueueSpec())

    execute(database_url, """update queues set spec = spec || '{"shiny": true}'""")

    assert await catalog.fresh_queue(ORDERS) == created


async def test_unavailable_database_is_reported(clock, tombstones):
    where = StorageSettings(redis_url="redis://unused", database_url="postgresql:///?host=/nowhere")
    async with (
        open_database(where) as database,
        open_catalog(
            database, Listener(where.database_url), clock, tombstones.tombstone
        ) as catalog,
    ):
        with pytest.raises(StorageUnavailable):
            await catalog.queue(ORDERS)
        with pytest.raises(StorageUnavailable):
            await catalog.put_queue(ORDERS, QueueSpec())


async def version_of(catalog: Catalog, name: QueueName) -> int:
    return (await catalog.queue(name)).version


async def is_cached(catalog: Catalog, name: QueueName) -> bool:
    """Return whether two reads give the same object."""
    return await catalog.queue(name) is await catalog.queue(name)


async def receive_announcements(catalog: Catalog, other: Catalog) -> None:
    """Wait until what was announced so far has invalidated what it had to."""
    later, announced = QueueName("announced-later"), asyncio.Event()

    def note(name: QueueName | None) -> None:
        if name == later:
            announced.set()

    catalog._queue_reader.on_invalidate.append(note)
    await other.put_queue(later, QueueSpec())
    async with asyncio.timeout(PATIENCE_S):
        await announced.wait()


def change_without_notification(url: str) -> None:
    """Make a change whose notification is lost."""
    execute(url, "update queues set version = 99")


def end_listeners(url: str) -> None:
    execute(
        url,
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where application_name = 'millstream-listener' and datname = current_database()",
    )


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())
