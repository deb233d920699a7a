"""A stream `clicks` in two tiers: appending, archiving, and loss of the hot store."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import redis

from storage.bootstrap import Storage
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.log.store_epoch import StoreEpoch
from storage.redis.keys import STORE_KEY, every_key
from storage.settings import StorageSettings
from tests.archive_steps import archive_stream

CLICKS = StreamName("clicks")


async def append(engines: Storage, *counts: int, name: StreamName = CLICKS) -> None:
    """Append batches of these sizes to shard 0, each record numbered by its offset."""
    for count in counts:
        [state, *_] = await engines.record_reader.shards(name)
        records = [Record(b"%d" % (state.next + nth), f"k{nth % 3}") for nth in range(count)]
        await engines.streams.append_to_shard(name, 0, records)


async def move_to_archive(
    engines: Storage, settings: StorageSettings, name: StreamName = CLICKS
) -> None:
    """Archive everything, and trim it from the hot store."""
    await archive_stream(engines, settings, name)
    while await engines.streams.trim(name, 1_000):
        pass


async def lose_hot_store(engines: Storage, redis_url: str) -> None:
    """Delete all keys of the stream's log, as when a disk is lost."""
    stream = await engines.catalog.stream(CLICKS)
    with redis.Redis.from_url(redis_url) as client:
        client.delete(*every_key("default", stream.shards[0].log_id))
        client.delete(STORE_KEY)
    epoch = engines.streams._provisioner._epoch
    assert isinstance(epoch, StoreEpoch)
    epoch._run_id = ""
    await epoch.check()


@asynccontextmanager
async def restored_older_copy(engines: Storage, redis_url: str) -> AsyncGenerator[None]:
    """Restore the hot store's initial content at the end of the block, as from a backup."""
    stream = await engines.catalog.stream(CLICKS)
    keys = every_key("default", stream.shards[0].log_id)
    with redis.Redis.from_url(redis_url) as client:
        copy = {key: client.dump(key) for key in keys if client.exists(key)}
        yield
        await lose_hot_store(engines, redis_url)
        for key, dump in copy.items():
            client.restore(key, 0, dump)
