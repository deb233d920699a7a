"""Splits and merges during writes and reads: no loss, no duplicates, order per key."""

import asyncio
import itertools
import random

import pytest

from storage.bootstrap import open_storage
from storage.domain.errors import ShardClosed
from storage.domain.log.record_batch import Record
from storage.domain.streams.stream import AppendCondition, Appended, Producer
from storage.settings import StorageSettings
from tests.integration.streams.records import CLICKS, KEYS, read_everything

pytestmark = pytest.mark.one_store


async def test_no_record_is_lost_and_key_order_is_kept(streams, redis_url, database_url):
    """Two processes write and one reads while the stream is resharded."""
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    written: dict[str, int] = dict.fromkeys(KEYS, 0)
    found: dict[str, list[int]] = {key: [] for key in KEYS}
    done = asyncio.Event()

    async def write(engine, keys) -> None:
        while not done.is_set():
            records = [Record(b"%d" % written[key], key) for key in keys]
            answers = await engine.append(CLICKS, records)
            assert all(isinstance(one, Appended) for one in answers), answers
            for key in keys:
                written[key] += 1

    async def read(engine) -> None:
        positions: dict[int, int] = {}
        while True:
            last = done.is_set()
            got = await engine.read(CLICKS, positions, records_max=500, wait_ms=50)
            for shard in got.shards:
                for one in shard.records:
                    found[one.record.key].append(int(one.record.data))
            if last and not any(shard.records for shard in got.shards):
                return
            positions = got.positions

    async def reshard(engine) -> None:
        chance = random.Random(7)
        for count in (2, 7, 3, 1, 4):
            stream = await engine.resharder.set_shard_count(CLICKS, count)
            shard = chance.choice(stream.open_shards)
            middle = (shard.first_hash_key + shard.last_hash_key) // 2
            stream = await engine.resharder.split(CLICKS, shard.index, middle)
            low, high = stream.open_shards[:2]
            await engine.resharder.merge(CLICKS, low.index, high.index)
        done.set()

    async with (
        open_storage(settings) as one,
        open_storage(settings) as two,
        asyncio.TaskGroup() as group,
    ):
        for nth, engine in enumerate([one, two] * 2):
            group.create_task(write(engine.streams, KEYS[nth::4]))
        group.create_task(read(two.record_reader))
        group.create_task(reshard(one.streams))

    assert min(written.values()) > 5
    for key in KEYS:
        assert found[key] == list(range(written[key])), key


async def reshard_for_a_while(streams, done: asyncio.Event) -> None:
    for count in (3, 1, 6, 2, 5, 1, 4):
        stream = await streams.resharder.set_shard_count(CLICKS, count)
        for low, high in itertools.pairwise(stream.open_shards[:4]):
            stream = await streams.resharder.merge(CLICKS, low.index, high.index)
            merged = stream.shards[-1]
            middle = (merged.first_hash_key + merged.last_hash_key) // 2
            stream = await streams.resharder.split(CLICKS, merged.index, middle)
            break
        await asyncio.sleep(0.02)
    done.set()


async def test_retries_add_nothing_during_reshards(reader, redis_url, database_url):
    """Every call is made twice, by two processes; a call may meet a half-finished merge."""
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    done = asyncio.Event()
    written: list[bytes] = []

    async def write(writer: int, first, second) -> None:
        chance = random.Random(writer)
        for number in itertools.count():
            if done.is_set():
                return
            keys = chance.sample(KEYS, 5)
            records = [Record(f"{writer} {number} {key}".encode(), key) for key in keys]
            name = f"call {writer} {number}"
            once = await first.append(CLICKS, records, idempotency_key=name)
            assert all(isinstance(one, Appended) for one in once), once
            assert not any(one.duplicate for one in once)
            if chance.random() < 0.5:
                await asyncio.sleep(chance.random() / 20)
            again = await second.append(CLICKS, records, idempotency_key=name)
            assert again == [Appended(one.shard, one.offset, True) for one in once]
            written.extend(record.data for record in records)

    async with (
        open_storage(settings) as one,
        open_storage(settings) as two,
        asyncio.TaskGroup() as group,
    ):
        for writer in range(6):
            pair = (one, two) if writer % 2 else (two, one)
            group.create_task(write(writer, pair[0].streams, pair[1].streams))
        group.create_task(reshard_for_a_while(one.streams, done))

    data = [record.data for _, _, record in await read_everything(reader, CLICKS)]
    assert sorted(data) == sorted(written)
    assert len(written) > 100


async def test_producer_follows_shard_through_splits_and_merges(reader, redis_url, database_url):
    """The writer retries every batch at its first address, follows redirects, and keeps its sequence."""
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    done = asyncio.Event()
    written: list[bytes] = []

    async def produce(name: str, engine) -> None:
        shard, sequence = 0, 0
        for number in itertools.count():
            if done.is_set():
                return
            batch = [Record(f"{name} {number} {nth}".encode()) for nth in range(3)]
            condition = AppendCondition(Producer(name, 0, sequence))
            once = None
            while once is None:
                try:
                    once = await engine.append_to_shard(CLICKS, shard, batch, condition)
                except ShardClosed as closed:
                    shard = closed.facts["children"][0]["shard"]
            again = await engine.append_to_shard(CLICKS, shard, batch, condition)
            assert again == [Appended(one.shard, one.offset, True) for one in once]
            sequence += len(batch)
            written.extend(record.data for record in batch)

    async with (
        open_storage(settings) as one,
        open_storage(settings) as two,
        asyncio.TaskGroup() as group,
    ):
        for nth, engine in enumerate([one, two] * 2):
            group.create_task(produce(f"p{nth}", engine.streams))
        group.create_task(reshard_for_a_while(one.streams, done))

    data = [record.data for _, _, record in await read_everything(reader, CLICKS)]
    assert sorted(data) == sorted(written)
