"""A process that touches many queues and streams at once reads and creates them together."""

import asyncio

import pytest
from sqlalchemy import text

from storage.bootstrap import open_storage
from storage.domain.errors import MillstreamError
from storage.domain.groups.group import Commit, GroupKind, GroupOffset, GroupSpec
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, QueueName, StreamName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec
from storage.postgres.database import open_database
from storage.settings import StorageSettings
from tests.integration.fault_proxy import running_database_proxy

pytestmark = pytest.mark.one_store

COUNT = 200
ANSWER_S = 0.02  # of a database in another zone
QUEUES = [QueueName(f"queue-{number}") for number in range(COUNT)]
STREAMS = [StreamName(f"stream-{number}") for number in range(COUNT // 4)]


@pytest.fixture
async def settings(redis_url, database_url):
    """Settings of a deployment in which all these queues and streams exist, not yet used."""
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with open_storage(settings) as storage:
        for queue in QUEUES:
            await storage.catalog.put_queue(queue, QueueSpec())
        for stream in STREAMS:
            await storage.catalog.put_stream(stream, StreamSpec(shards=4))
    return settings


@pytest.fixture
async def proxied(settings, database_url, short_folder):
    """Settings of a process whose database answers late, and the switches for that."""
    async with running_database_proxy(database_url, short_folder) as (url, faults):
        yield StorageSettings(redis_url=settings.redis_url, database_url=url), faults


async def use_everything(storage) -> None:
    await asyncio.gather(
        *(storage.queues.send(queue, [NewMessage(b"x")]) for queue in QUEUES),
        *(
            storage.streams.append_to_shard(stream, shard, [Record(b"x")])
            for stream in STREAMS
            for shard in range(4)
        ),
    )


async def test_new_process_serves_many_cold_objects_at_once(proxied):
    """One that touched a hundred queues at once answered `storage_busy` to some callers."""
    settings, faults = proxied
    async with open_storage(settings) as storage:
        faults.delay_s = ANSWER_S

        await use_everything(storage)


async def test_new_process_serves_many_cold_groups_at_once(proxied):
    settings, faults = proxied
    names = [GroupName(f"group-{number}") for number in range(COUNT)]
    async with open_storage(settings) as storage:
        for name in names:
            spec = GroupSpec(stream=STREAMS[0].name, kind=GroupKind.SIMPLE)
            await storage.groups.put(name, spec)
    async with open_storage(settings) as storage:
        faults.delay_s = ANSWER_S

        results = await asyncio.gather(
            *(storage.groups.commit(name, [Commit(0, 0)]) for name in names)
        )

    assert results == [[GroupOffset(0, 0)]] * COUNT


async def test_process_without_announcements_serves_many_objects(proxied, monkeypatch):
    """While the LISTEN connection is lost nothing is cached, and every call reads its definition."""
    settings, faults = proxied
    async with open_storage(settings) as storage:
        await use_everything(storage)
        for reader in (storage.catalog._queue_reader, storage.catalog._stream_reader):
            monkeypatch.setattr(reader._cache, "_may_keep", lambda: False)
            reader._cache.invalidate_all()
        faults.delay_s = ANSWER_S

        for _ in range(3):
            await use_everything(storage)


async def test_undecodable_definition_fails_alone(settings, database_url):
    """A definition of a later version, read together with others, fails without them."""
    async with open_database(settings) as database, database.writing() as session:
        await session.execute(
            text("update queues set spec = jsonb_set(spec, '{type}', '1') where name = 'queue-7'")
        )

    async with open_storage(settings) as storage:
        results = await asyncio.gather(
            *(storage.catalog.queue(queue) for queue in QUEUES), return_exceptions=True
        )

    failed = [
        queue.name
        for queue, result in zip(QUEUES, results, strict=True)
        if isinstance(result, Exception)
    ]
    assert failed == ["queue-7"]
    assert not isinstance(results[7], MillstreamError)


@pytest.mark.parametrize("table", ["queues", "streams"])
async def test_undecodable_definition_is_left_out_of_maintenance(
    settings, database_url, table, caplog
):
    """One row of a later version ended the sweep of all queues, and of all streams."""
    async with open_database(settings) as database, database.writing() as session:
        await session.execute(text(f"update {table} set spec = '[]' where name like '%-7'"))

    async with open_storage(settings) as storage:
        for _ in range(2):
            read = (
                storage.catalog.iter_queues if table == "queues" else storage.catalog.iter_streams
            )
            names = [definition.name.name async for definition in read()]

    assert len(names) == len(QUEUES if table == "queues" else STREAMS) - 1
    assert not any(name.endswith("-7") for name in names)
    assert caplog.messages.count("definition_unreadable") == 1
