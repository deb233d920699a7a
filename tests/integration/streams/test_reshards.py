"""Splits, merges and shard counts, as writers and readers of the stream see them."""

import asyncio

import pytest
import redis

from storage.bootstrap import open_storage
from storage.domain.errors import (
    ShardClosed,
    ShardNotFound,
    StreamBusy,
    StreamNotFound,
    ValidationFailed,
)
from storage.domain.limits import IDEMPOTENCY_WINDOW_MS
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.stream import RING_SIZE, AppendCondition, Producer, ReadFrom, hash_key
from storage.postgres.advisory_lock import try_advisory_lock
from storage.settings import StorageSettings
from tests.conditions import PATIENCE_S
from tests.integration.streams.records import (
    CLICKS,
    HALF,
    KEYS,
    WIDE,
    append,
    by_key,
    read_everything,
)


async def test_split_closes_shard_and_opens_children(streams):
    await append(streams)

    stream = await streams.resharder.split(CLICKS, 0, HALF)

    closed, low, high = stream.shards
    assert closed.closed_at_ms is not None
    assert (low.parents, high.parents) == ((0,), (0,))
    assert (low.first_hash_key, low.last_hash_key) == (0, HALF - 1)
    assert (high.first_hash_key, high.last_hash_key) == (HALF, RING_SIZE - 1)
    assert stream.open_shards == (low, high)
    assert stream.children_of(0) == (low, high)
    appended = await append(streams)
    for key, one in zip(KEYS, appended, strict=True):
        assert one.shard == (1 if hash_key(key) < HALF else 2)


async def test_adjacent_shards_are_merged(streams):
    await append(streams, WIDE)

    stream = await streams.resharder.merge(WIDE, 2, 1)

    merged = stream.shard(4)
    assert merged.parents == (2, 1)
    assert [shard.index for shard in stream.open_shards] == [0, 4, 3]
    assert {one.shard for one in await append(streams, WIDE)} == {0, 4, 3}


async def test_stream_can_be_resharded_to_any_count(streams, reader):
    for count in (3, 1, 8, 5):
        await append(streams)
        stream = await streams.resharder.set_shard_count(CLICKS, count)
        assert len(stream.open_shards) == count
        assert stream.shards_target is None
    await append(streams)

    records = await read_everything(reader, CLICKS)

    assert len(records) == 5 * len(KEYS)


async def test_child_opens_in_later_second_than_its_parents(streams):
    stream = await streams.resharder.set_shard_count(CLICKS, 4)

    for shard in stream.shards:
        for parent in stream.parents_of(shard):
            assert shard.opened_at_ms // 1_000 > parent.opened_at_ms // 1_000


async def test_invalid_reshard_is_rejected(streams):
    await streams.resharder.split(CLICKS, 0, HALF)

    with pytest.raises(ValidationFailed):
        await streams.resharder.split(CLICKS, 0, HALF)
    with pytest.raises(ValidationFailed):
        await streams.resharder.split(CLICKS, 1, HALF)
    with pytest.raises(ValidationFailed):
        await streams.resharder.merge(WIDE, 0, 2)
    with pytest.raises(ValidationFailed):
        await streams.resharder.set_shard_count(CLICKS, 0)
    with pytest.raises(ShardNotFound):
        await streams.resharder.merge(CLICKS, 1, 7)
    with pytest.raises(StreamNotFound):
        await streams.resharder.split(StreamName("nowhere"), 0, HALF)


async def test_append_to_closed_shard_names_its_children(streams):
    await streams.resharder.split(CLICKS, 0, HALF)

    with pytest.raises(ShardClosed) as closed:
        await streams.append_to_shard(CLICKS, 0, [Record(b"x")])

    assert [child["shard"] for child in closed.value.facts["children"]] == [1, 2]
    assert closed.value.facts["children"][1]["first_hash_key"] == str(HALF)


async def test_append_with_stale_definition_is_redirected_to_children(
    streams, redis_url, database_url, clock, monkeypatch
):
    """Its appends are redirected through two generations until it learns of the change."""
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with open_storage(settings, clock=clock) as other:
        await append(other.streams)
        monkeypatch.setattr(
            other.catalog._stream_reader, "invalidate", lambda _: None
        )  # misses notifications
        await streams.resharder.set_shard_count(CLICKS, 4)
        await streams.resharder.merge(CLICKS, 3, 4)
        old = await other.catalog.stream(CLICKS)
        monkeypatch.setattr(other.catalog._stream_reader, "fresh", None)  # and does not read again

        appended = await append(other.streams)

        assert len(old.shards) == 1
        assert {one.shard for one in appended} == {7, 5, 6}


async def test_stale_process_can_address_child_by_index(engines, streams, reader, monkeypatch):
    """A client may know the child from another process."""
    old = await engines.catalog.stream(CLICKS)
    await streams.resharder.split(CLICKS, 0, HALF)
    monkeypatch.setattr(engines.catalog._stream_reader._cache, "get_cached", lambda _: old)

    appended = await streams.append_to_shard(CLICKS, 2, [Record(b"x")])

    read = await reader.read_shard(CLICKS, 2, ReadFrom(offset=0), wait_ms=1)
    await streams.set_fence(CLICKS, 1, "mine")
    assert [(one.shard, one.offset) for one in appended] == [(2, 0)]
    assert len(read.records) == 1
    with pytest.raises(ShardNotFound):
        await streams.append_to_shard(CLICKS, 3, [Record(b"x")])


@pytest.mark.one_server
async def test_append_after_split_costs_one_script_call(streams, redis_url, clock):
    def calls(store) -> int:
        return int(store.info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"])

    await append(streams)
    await streams.resharder.split(CLICKS, 0, HALF)
    record = Record(b"x", "k")
    [at] = await streams.append(CLICKS, [record])
    shard = 3 - at.shard
    for sequence in range(2):
        producer = AppendCondition(Producer("p", 0, sequence))
        await streams.append_to_shard(CLICKS, shard, [record], producer)
    clock.advance(ms=IDEMPOTENCY_WINDOW_MS + 60_000)
    counts = []
    with redis.Redis.from_url(redis_url) as store:
        for verb in (
            streams.append(CLICKS, [record]),
            streams.append(CLICKS, [record], idempotency_key="k"),
            streams.append_to_shard(CLICKS, shard, [record]),
            streams.append_to_shard(CLICKS, shard, [record], AppendCondition(Producer("p", 0, 2))),
        ):
            before = calls(store)
            await verb
            counts.append(calls(store) - before)

    assert counts == [1, 1, 1, 1]


async def test_end_of_closed_shard_names_its_children(streams, reader):
    await append(streams)
    count = len(KEYS)
    before = await reader.read_shard(CLICKS, 0, ReadFrom(offset=0))
    await streams.resharder.split(CLICKS, 0, HALF)

    half = await reader.read_shard(CLICKS, 0, ReadFrom(offset=0), records_max=3)
    rest = await reader.read_shard(CLICKS, 0, ReadFrom(offset=3))
    end = await reader.read_shard(CLICKS, 0, ReadFrom(offset=count), wait_ms=20_000)

    assert (before.ended, before.children) == (False, ())
    assert (half.ended, half.children) == (False, ())
    assert rest.ended
    assert [child.index for child in rest.children] == [1, 2]
    assert end.ended


async def test_waiting_shard_reader_is_woken_when_shard_ends(streams, reader):
    await reader.shards(CLICKS)
    waiting = asyncio.create_task(reader.read_shard(CLICKS, 0, ReadFrom(offset=0), wait_ms=20_000))
    await asyncio.sleep(0.1)

    await streams.resharder.split(CLICKS, 0, HALF)

    assert (await asyncio.wait_for(waiting, PATIENCE_S)).ended


async def test_waiting_stream_reader_continues_with_children(streams, reader):
    waiting = asyncio.create_task(reader.read(CLICKS, {}, wait_ms=20_000))
    await asyncio.sleep(0.1)
    await streams.resharder.split(CLICKS, 0, HALF)
    await asyncio.sleep(0.1)

    [one] = await streams.append(CLICKS, [Record(b"late", "k")])

    read = await asyncio.wait_for(waiting, PATIENCE_S)
    assert [
        (shard.shard, [r.record.data for r in shard.records])
        for shard in read.shards
        if shard.records
    ] == [(one.shard, [b"late"])]


async def test_children_are_read_after_all_their_parents(streams, reader):
    await append(streams, WIDE, b"1")
    await streams.resharder.merge(WIDE, 0, 1)
    await append(streams, WIDE, b"2")

    records = await read_everything(reader, WIDE)

    assert all(order == [b"1", b"2"] for order in by_key(records).values())
    assert len(records) == 2 * len(KEYS)


async def test_concurrent_reshard_is_rejected(engines, streams):
    stream = await engines.catalog.stream(CLICKS)
    database = streams.resharder._database

    async with try_advisory_lock(database, f"reshard:{stream.stream_id}") as mine:
        assert mine
        with pytest.raises(StreamBusy):
            await streams.resharder.split(CLICKS, 0, HALF)
    await streams.resharder.split(CLICKS, 0, HALF)


async def test_reshard_increments_version_and_equal_spec_still_matches(engines, streams):
    before = await engines.catalog.stream(CLICKS)

    after = await streams.resharder.split(CLICKS, 0, HALF)

    stored, *_ = await engines.catalog.put_stream(CLICKS, before.spec)
    assert after.version == before.version + 1
    assert stored == after
