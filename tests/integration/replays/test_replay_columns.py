"""Replays in columns send what a replay record by record would send (R1)."""

import asyncio
import random
from collections import Counter

import pytest

from storage.domain.log.record_batch import CONTENT_TYPE, Record
from storage.domain.names import QueueName
from storage.domain.queues.queue import QueueSpec
from storage.domain.replays.replay import (
    SOURCE_OFFSET,
    SOURCE_SHARD,
    Order,
    ShardMode,
    Target,
    origins,
    own_headers,
)
from storage.domain.streams.record_filter import Condition, Filter, Sample, selects
from storage.domain.streams.stream import RING_SIZE, ReadFrom, StreamSpec
from tests.replay_steps import (
    KEEP,
    SOURCE,
    TARGET,
    everything,
    replay,
    replay_request,
)

pytestmark = pytest.mark.one_store

WORK = QueueName("work")
FILTERS = [
    Filter(),
    Filter(),
    Filter(keys=("", "k1", "ä")),
    Filter(headers={"h": "1"}),
    Filter(body=(Condition(path="/n", exists=True),)),
    Filter(sample=Sample(fraction=0.5)),
]


def random_record(chance: random.Random, number: int) -> Record:
    """Return a record of which each column may be missing."""
    headers = [("h", "", b"%d" % (number % 2)), ("x", "String", b"\0\xff"), ("empty", "", b"")]
    own = chance.sample(headers, chance.randint(0, 3)) if chance.random() < 0.4 else []
    if chance.random() < 0.3:
        own.append((CONTENT_TYPE, "", b"text/plain"))
    data = chance.choice([b"", b"%d" % number, b'{"n": %d}' % number, b"x" * 300])
    key = chance.choice(["", "k1", "k2", "ä", "long" * 60])
    event_time_ms = chance.choice([None, None, number])
    return Record(data, key, tuple(own), event_time_ms)


async def fill_source(storage, chance: random.Random) -> None:
    """Append random batches to a source that is resharded and truncated meanwhile."""
    await storage.catalog.put_stream(SOURCE, KEEP)
    reshards = {chance.randrange(12) for _ in range(2)}
    for batch in range(12):
        records = [random_record(chance, batch * 50 + nth) for nth in range(chance.randint(1, 40))]
        await storage.streams.append(SOURCE, records)
        if batch in reshards:
            await split_one(storage, SOURCE, chance)
    [first, *_] = await storage.record_reader.shards(SOURCE)
    await storage.streams.truncate(SOURCE, 0, first.start + (first.next - first.start) // 3)


async def split_one(storage, name, chance: random.Random) -> None:
    stream = await storage.catalog.fresh_stream(name)
    shard = chance.choice(stream.open_shards)
    middle = (shard.first_hash_key + shard.last_hash_key) // 2
    await storage.streams.resharder.split(name, shard.index, middle)


def replayed(shard: int, log_record) -> Record:
    """Return what a replay sends for one record."""
    record = log_record.record
    own, content_type = own_headers(record.headers)
    if content_type:
        own.append((CONTENT_TYPE, "", content_type.encode()))
    origin = origins("r", "source", shard, [log_record.offset], [log_record.arrival_ms])[0]
    return Record(record.data, record.key, (*own, *origin), record.event_time_ms)


async def expected_records(storage, record_filter: Filter) -> list[Record]:
    """Return what is to be sent, read record by record."""
    matches = selects(record_filter)
    records: list[Record] = []
    for state in await storage.record_reader.shards(SOURCE):
        offset = state.start
        while offset < state.next:
            read = await storage.record_reader.read_shard(
                SOURCE, state.shard.index, ReadFrom(offset=offset)
            )
            records += [
                replayed(state.shard.index, one)
                for one in read.records
                if matches is None or matches(state.shard.index, one)
            ]
            offset = read.next_offset
    return records


def place_of(record: Record) -> tuple[int, int]:
    headers = {name: value for name, _, value in record.headers}
    return int(headers[SOURCE_SHARD]), int(headers[SOURCE_OFFSET])


@pytest.mark.parametrize("seed", range(8))
async def test_replay_in_columns_equals_single_records(engines, seed, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.REPLAY_READ_RECORDS", 37)
    monkeypatch.setattr("storage.domain.limits.ENTRY_RECORDS_MAX", 11)
    chance = random.Random(seed)
    await fill_source(engines, chance)
    spec = StreamSpec(shards=chance.randint(1, 3), key_index=chance.random() < 0.3)
    await engines.catalog.put_stream(TARGET, spec)
    record_filter, order = chance.choice(FILTERS), chance.choice([*Order])
    await reshard_while_sending(engines, chance, monkeypatch)

    parts = await replay(engines, replay_request(filter=record_filter, order=order), "r")

    expected = await expected_records(engines, record_filter)
    actual = [one.record for one in await everything(engines)]
    assert Counter(actual) == Counter(expected)
    assert sum(part.sent for part in parts) == len(expected)
    if order is not Order.NONE:
        for key in {record.key for record in expected if record.key}:
            of_key = [place_of(record) for record in actual if record.key == key]
            for shard in {shard for shard, _ in of_key}:
                assert [at for at in of_key if at[0] == shard] == sorted(
                    at for at in of_key if at[0] == shard
                )


async def reshard_while_sending(engines, chance: random.Random, monkeypatch) -> None:
    """Split a shard of the target before some of the appends."""
    append, calls = engines.streams.append_idempotent_columns, iter(range(1_000))
    turn = asyncio.Lock()

    async def appends(*args, **kwargs):
        if next(calls) in (1, 4):
            async with turn:
                await split_one(engines, TARGET, chance)
        return await append(*args, **kwargs)

    monkeypatch.setattr(engines.streams, "append_idempotent_columns", appends)


@pytest.mark.parametrize("seed", range(2))
async def test_queue_gets_messages_of_selected_records(engines, seed):
    chance = random.Random(seed)
    await fill_source(engines, chance)
    await engines.catalog.put_queue(WORK, QueueSpec())
    record_filter = chance.choice(FILTERS[2:])

    await replay(engines, replay_request(target=Target(queue="work"), filter=record_filter), "r")

    expected = await expected_records(engines, record_filter)
    messages = []
    while received := await engines.queues.receive(WORK, messages_max=10):
        messages += received
    assert Counter((one.body, one.system) for one in messages) == Counter(
        (record.data, record.headers[-5:]) for record in expected
    )


async def test_target_that_keeps_shards_gets_columns_at_their_hash_keys(engines):
    await fill_source(engines, random.Random(3))
    await engines.catalog.put_stream(TARGET, StreamSpec(shards=2))
    source = await engines.catalog.fresh_stream(SOURCE)
    halves = {shard.index: shard.first_hash_key // (RING_SIZE // 2) for shard in source.shards}

    target = Target(stream="target", shard_mode=ShardMode.KEEP)
    await replay(engines, replay_request(target=target), "r")

    read = await engines.record_reader.read(TARGET, {})
    for shard in read.shards:
        assert {halves[place_of(one.record)[0]] for one in shard.records} <= {shard.shard}
