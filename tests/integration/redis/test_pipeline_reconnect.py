"""Calls that wait for a connection are not sent to a different store."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from storage.domain.errors import StorageUnavailable
from storage.domain.limits import Limits
from storage.domain.log.address import LogAddress
from storage.hot_store.log_store import LogOpening
from storage.redis.streams.logs import RedisLogStore
from storage.redis.transport.client import open_client
from storage.redis.transport.pipeline import Pipeline
from storage.redis.transport.topology import Nodes

pytestmark = pytest.mark.one_server  # the names are assigned to connections in order
AT = LogAddress("default", "0123456789abcdef")


class Stores:
    """Names the store behind each new connection in order, and signals when it is asked."""

    def __init__(self, *names: int) -> None:
        self.names = [*names]
        self.asked = asyncio.Event()
        self.may_tell = asyncio.Event()
        self.may_tell.set()

    async def name(self) -> int:
        self.asked.set()
        await self.may_tell.wait()
        return self.names.pop(0) if len(self.names) > 1 else self.names[0]


@pytest.fixture
async def stores() -> Stores:
    return Stores(1, 2)


@pytest.fixture
async def pipeline(redis_url: str, stores: Stores) -> AsyncIterator[Pipeline]:
    pipeline = Pipeline(Nodes(redis_url), Limits(write_workers=1), stores.name)
    yield pipeline
    await pipeline.close()


async def make_log(pipeline: Pipeline) -> bool:
    return await RedisLogStore(pipeline, Limits()).create(AT, LogOpening(0, 10, 1, 0))


async def keys_in(redis_url: str) -> int:
    async with open_client(redis_url) as client:
        return int(await client.dbsize())


async def all_connections_end(redis_url: str) -> None:
    async with open_client(redis_url) as client:
        await client.client_kill_filter(_type="normal", skipme=True)


async def test_calls_made_for_previous_store_are_not_sent_to_next(redis_url, pipeline, stores):
    """Appends waiting for a promoted replica had the old epoch, and assigned offsets twice."""
    await RedisLogStore(pipeline, Limits()).raise_ceiling(AT, 10, 1)
    await all_connections_end(redis_url)
    stores.asked.clear()
    stores.may_tell.clear()
    first = asyncio.create_task(make_log(pipeline))
    await stores.asked.wait()
    second = asyncio.create_task(make_log(pipeline))
    await asyncio.sleep(0)

    stores.may_tell.set()
    refused = await asyncio.gather(first, second, return_exceptions=True)

    assert all(isinstance(error, StorageUnavailable) for error in refused), refused
    assert await keys_in(redis_url) == 0
    assert await make_log(pipeline)  # calls made for this store are sent
    assert await keys_in(redis_url) == 1


async def test_waiting_calls_are_sent_after_reconnect_to_same_store(redis_url, pipeline, stores):
    stores.names = [1]
    await RedisLogStore(pipeline, Limits()).raise_ceiling(AT, 10, 1)

    await all_connections_end(redis_url)

    assert await make_log(pipeline)


async def test_redirected_call_keeps_its_store_identity(pipeline, stores):
    stores.names = [2]
    await RedisLogStore(pipeline, Limits()).raise_ceiling(AT, 10, 1)
    lane = pipeline._seed.writes

    with pytest.raises(StorageUnavailable):
        await lane.redirect((b"PING",), 1)

    assert await lane.redirect((b"PING",), 2) == b"PONG"
