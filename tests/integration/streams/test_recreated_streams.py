"""A position belongs to one stream: nothing reads on in another one that has its name.

Each verb is called with the position of a deleted stream, by a process that missed the announcements of the
change, and by one that did not.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from consumers.feeds.blocks import Format
from consumers.feeds.feed import Feeds
from consumers.feeds.stream_tail import Tail
from storage.bootstrap import Storage, open_storage
from storage.domain.errors import GroupNotFound, StreamNotFound, StreamRecreated
from storage.domain.groups.group import Commit, GroupKind, GroupSpec, ResetSpec, ResetTo
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, StreamName
from storage.domain.streams.stream import ReadFrom, Stream, StreamSpec
from storage.streams.seek import offset_since, positions_since
from tests.conditions import PATIENCE_S

pytestmark = pytest.mark.one_store

CLICKS = StreamName("clicks")
READERS = GroupName("readers")
RECORDS = 5

Reading = Callable[[Storage, Stream], Coroutine[Any, Any, object]]


async def read_shard(storage: Storage, stream: Stream) -> object:
    where = ReadFrom(offset=RECORDS)
    return await storage.record_reader.read_shard(CLICKS, 0, where, stream_id=stream.stream_id)


async def read(storage: Storage, stream: Stream) -> object:
    return await storage.record_reader.read(CLICKS, {0: RECORDS}, stream_id=stream.stream_id)


async def read_shards(storage: Storage, stream: Stream) -> object:
    return await storage.record_reader.read_shards(CLICKS, {0: RECORDS}, stream_id=stream.stream_id)


async def shards(storage: Storage, stream: Stream) -> object:
    return await storage.record_reader.shards(CLICKS, stream.stream_id)


async def truncate(storage: Storage, stream: Stream) -> object:
    return await storage.streams.truncate(CLICKS, 0, 1, stream.stream_id)


async def table(storage: Storage, stream: Stream) -> object:
    return await storage.arrow_reader.read(
        CLICKS, 0, offset=RECORDS, end=None, bytes_max=1_000, stream_id=stream.stream_id
    )


async def since(storage: Storage, stream: Stream) -> object:
    return await offset_since(storage.record_reader, CLICKS, 0, 0, stream.stream_id)


async def all_since(storage: Storage, stream: Stream) -> object:
    return await positions_since(
        storage.record_reader, storage.catalog, CLICKS, 0, stream.stream_id
    )


async def feed(storage: Storage, stream: Stream) -> object:
    feeds = Feeds(storage.record_reader, {"": Format(lambda _, at: at.record.data)})
    async with feeds.of(CLICKS, 0, stream.stream_id) as one_feed:
        return await one_feed.at(RECORDS)


async def tail(storage: Storage, stream: Stream) -> object:
    feeds = Feeds(storage.record_reader, {"": Format(lambda _, at: at.record.data)})
    positions = {0: RECORDS}
    async with Tail(
        feeds, storage.catalog, CLICKS, positions, stream_id=stream.stream_id
    ) as reader:
        return await reader.next(0)


async def group_fetch(storage: Storage, _: Stream) -> object:
    return await storage.groups.fetcher.fetch(READERS)


async def group_lag(storage: Storage, _: Stream) -> object:
    return await storage.groups.lags.by_shard(READERS)


async def group_reset(storage: Storage, _: Stream) -> object:
    return await storage.groups.positions.reset(READERS, ResetSpec(to=ResetTo.EARLIEST))


async def group_commit(storage: Storage, _: Stream) -> object:
    return await storage.groups.commit(READERS, [Commit(0, 1)])


READINGS: list[Reading] = [
    *(read_shard, read, read_shards, shards, truncate, table, since, all_since, feed, tail),
    *(group_fetch, group_lag, group_reset, group_commit),
]


@pytest.fixture
async def other(redis_url, database_url, clock, settings) -> AsyncIterator[Storage]:
    """Another process of the deployment."""
    async with open_storage(settings, clock=clock) as storage:
        yield storage


async def append(storage: Storage, count: int) -> None:
    await storage.streams.append_to_shard(CLICKS, 0, [Record(b"x") for _ in range(count)])


async def recreate(storage: Storage, records: int) -> None:
    await storage.catalog.delete_stream(CLICKS)
    await storage.catalog.put_stream(CLICKS, StreamSpec())
    await append(storage, records)


@pytest.mark.parametrize("records", [RECORDS + 3, RECORDS - 3], ids=["more", "fewer"])
@pytest.mark.parametrize("is_deaf", [False, True], ids=["informed", "deaf"])
@pytest.mark.parametrize("reading", READINGS, ids=lambda reading: reading.__name__)
async def test_position_of_deleted_stream_is_rejected(
    storage, other, reading, is_deaf, records, monkeypatch
):
    """A checkpoint of a deleted stream skipped the first records of its successor, silently."""
    stream, *_ = await storage.catalog.put_stream(CLICKS, StreamSpec())
    await append(storage, RECORDS)
    await storage.groups.put(READERS, GroupSpec(stream="clicks", kind=GroupKind.SIMPLE))
    await other.groups.fetcher.fetch(READERS)
    if is_deaf:
        monkeypatch.setattr(other.catalog._stream_reader, "invalidate", lambda name: None)
    await recreate(storage, records)
    if not is_deaf:
        await caught_up(other, stream)

    with pytest.raises((StreamRecreated, GroupNotFound)):
        await reading(other, stream)


async def caught_up(process: Storage, former: Stream) -> None:
    """Wait until a process has heard of the new stream."""
    async with asyncio.timeout(PATIENCE_S):
        while (await process.catalog.stream(CLICKS)).stream_id == former.stream_id:  # noqa: ASYNC110 no event tells
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("records", [RECORDS + 3, RECORDS - 3], ids=["more", "fewer"])
async def test_waiting_read_does_not_continue_in_recreated_stream(storage, records):
    """A read that waits at the end has a position of its own, although its caller named none."""
    await storage.catalog.put_stream(CLICKS, StreamSpec())
    await append(storage, RECORDS)
    waiting = [
        asyncio.create_task(one)
        for one in (
            storage.record_reader.read_shard(CLICKS, 0, ReadFrom(offset=RECORDS), wait_ms=10_000),
            storage.record_reader.read(CLICKS, {0: RECORDS}, wait_ms=10_000),
        )
    ]
    await asyncio.sleep(0.1)

    await recreate(storage, records)
    results = await asyncio.gather(*waiting, return_exceptions=True)

    assert all(isinstance(result, StreamNotFound) for result in results), results


async def test_reader_without_position_reads_recreated_stream(storage, other, monkeypatch):
    """Its definition is stale, and it asked for the oldest records of whatever has the name."""
    await storage.catalog.put_stream(CLICKS, StreamSpec())
    await append(storage, RECORDS)
    await other.catalog.stream(CLICKS)
    monkeypatch.setattr(other.catalog._stream_reader, "invalidate", lambda name: None)
    await recreate(storage, 2)

    one_shard = await other.record_reader.read_shard(CLICKS, 0, ReadFrom(time_ms=0))
    states = await other.record_reader.shards(CLICKS)
    everything = await other.record_reader.read(CLICKS, {})

    current = await storage.catalog.stream(CLICKS)
    assert len(one_shard.records) == 2
    assert {one_shard.stream_id, everything.stream_id, states[0].stream_id} == {current.stream_id}


async def test_deleted_stream_is_not_found(storage):
    stream, *_ = await storage.catalog.put_stream(CLICKS, StreamSpec())
    await append(storage, RECORDS)
    await storage.catalog.delete_stream(CLICKS)

    with pytest.raises(StreamNotFound) as error:
        await read_shard(storage, stream)

    assert error.type is StreamNotFound
