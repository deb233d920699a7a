"""Loads of shards, measured from their recent records."""

import pytest

from storage.domain import limits
from storage.domain.errors import StreamNotFound
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.stream import StreamSpec

CLICKS = StreamName("clicks")


@pytest.fixture
async def loads(engines):
    await engines.catalog.put_stream(CLICKS, StreamSpec(shards=2))
    return engines.shard_loads


async def append(engines, *keys: str, data: bytes = b"x") -> None:
    await engines.streams.append(CLICKS, [Record(data, key) for key in keys])


async def test_rates_are_those_of_the_last_minute(engines, loads, clock):
    await append(engines, *["old"] * 50)
    clock.advance(ms=2 * limits.SHARD_LOAD_WINDOW_MS)
    await append(engines, *["new"] * 30)

    measured = await loads.of_stream(CLICKS)

    assert sorted(load.records_per_second for load in measured) == [0, 0.5]
    [busy] = [load for load in measured if load.sampled]
    assert [key.key for key in busy.keys] == ["new"]


async def test_loads_are_by_index_and_include_idle_shards(engines, loads, clock):
    clock.advance(ms=limits.SHARD_LOAD_WINDOW_MS)
    await append(engines, "user-1")

    assert [load.shard for load in await loads.of_stream(CLICKS)] == [0, 1]


async def test_sample_is_spread_over_the_window(engines, loads, clock, monkeypatch):
    monkeypatch.setattr(limits, "SHARD_LOAD_READ_RECORDS", 2)
    monkeypatch.setattr(limits, "SHARD_LOAD_READS", 5)
    keys = ["a"] * 50 + ["b"] * 50
    await engines.streams.resharder.set_shard_count(CLICKS, 1)
    await append(engines, *keys)

    [load] = await loads.of_stream(CLICKS)

    assert load.sampled == 10
    assert {key.key: key.share for key in load.keys} == {"a": 0.6, "b": 0.4}


async def test_young_shard_has_the_rate_of_its_time(engines, loads, clock):
    clock.advance(ms=limits.SHARD_LOAD_WINDOW_MS)
    await engines.streams.resharder.set_shard_count(CLICKS, 1)
    await append(engines, *["a"] * 40)
    clock.advance(ms=10_000)

    [load] = await loads.of_stream(CLICKS)

    assert load.records_per_second == pytest.approx(4)


async def test_only_the_busiest_shards_are_sampled(engines, loads, monkeypatch):
    monkeypatch.setattr(limits, "SHARD_LOAD_SAMPLED_MAX", 1)
    await append(engines, *["a"] * 40, *[f"user-{number}" for number in range(20)])

    measured = await loads.of_stream(CLICKS)

    assert all(load.records_per_second > 0 for load in measured)
    assert sum(load.sampled > 0 for load in measured) == 1


async def test_large_records_are_sampled_within_bounds(engines, loads):
    await engines.streams.resharder.set_shard_count(CLICKS, 1)
    await append(engines, *["a"] * 20, data=b"x" * limits.SHARD_LOAD_READ_BYTES)

    [load] = await loads.of_stream(CLICKS)

    assert 0 < load.sampled <= 20


async def test_split_at_the_proposed_key_divides_the_load(engines, loads, clock):
    await engines.streams.resharder.set_shard_count(CLICKS, 1)
    users = [f"user-{number}" for number in range(200)]
    await append(engines, *users)
    [load] = await loads.of_stream(CLICKS)

    stream = await engines.streams.resharder.split(CLICKS, load.shard, load.split.at_hash_key)
    await append(engines, *users)
    clock.advance(ms=limits.SHARD_LOAD_CACHE_MS)
    measured = {one.shard: one.sampled for one in await loads.of_stream(CLICKS)}

    assert [measured[shard.index] for shard in stream.open_shards] == [100, 100]


async def test_load_of_missing_stream_is_refused(loads):
    with pytest.raises(StreamNotFound):
        await loads.of_stream(StreamName("missing"))
