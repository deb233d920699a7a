"""Options of a stream: fences, hash keys, retention, event times, scaling, key index."""

import asyncio

import pytest
import redis

from consumers.maintenance.tasks.reshards import finish_reshards
from consumers.maintenance.tasks.stream_loads import scale_streams
from storage.domain.errors import (
    FenceMismatch,
    OffsetExpired,
    OffsetOutOfRange,
    OutcomeUnknown,
    RecordNotFound,
    ShardClosed,
    ShardNotFound,
    StorageUnavailable,
    ValidationFailed,
)
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.columnar_batch import Columns
from storage.domain.streams.load_scaler import Load
from storage.domain.streams.stream import (
    RING_SIZE,
    AppendCondition,
    Appended,
    EventTimes,
    ReadFrom,
    StreamMode,
    StreamSpec,
)
from storage.redis.keys import STORE_KEY

CLICKS = StreamName("clicks")
WIDE = StreamName("wide")
HALF = RING_SIZE // 2
MINE = AppendCondition(fence="mine")


@pytest.fixture
async def streams(engines):
    await engines.catalog.put_stream(CLICKS, StreamSpec())
    await engines.catalog.put_stream(WIDE, StreamSpec(shards=4))
    return engines.streams


def places(appended: list[Appended]) -> list[tuple[int, int]]:
    return [(one.shard, one.offset) for one in appended]


async def entry(streams, count: int, name=CLICKS) -> None:
    """Append records that share one entry of the log."""
    await streams.append(name, [Record(b"%d" % number, "k") for number in range(count)])


# Fences


async def test_fenced_shard_accepts_only_its_writer(streams, reader):
    await streams.set_fence(CLICKS, 0, "mine")

    appended = await streams.append_to_shard(CLICKS, 0, [Record(b"x")], MINE)
    with pytest.raises(FenceMismatch):
        await streams.append_to_shard(CLICKS, 0, [Record(b"x")], AppendCondition(fence="other"))
    with pytest.raises(FenceMismatch):
        await streams.append_to_shard(CLICKS, 0, [Record(b"x")])
    [refused] = await streams.append(CLICKS, [Record(b"x")])

    assert places(appended) == [(0, 0)]
    assert isinstance(refused, FenceMismatch)
    [state] = await reader.shards(CLICKS)
    assert (state.next, state.fenced) == (1, True)


async def test_writer_with_replaced_fence_is_rejected(streams):
    await streams.set_fence(CLICKS, 0, "mine")
    await streams.set_fence(CLICKS, 0, "")

    with pytest.raises(FenceMismatch):
        await streams.append_to_shard(CLICKS, 0, [Record(b"x")], MINE)
    assert places(await streams.append(CLICKS, [Record(b"x")])) == [(0, 0)]


async def test_concurrent_fence_changes_have_one_winner(streams):
    outcomes = await asyncio.gather(
        *(streams.set_fence(CLICKS, 0, token, "") for token in ("a", "b")), return_exceptions=True
    )

    assert [type(outcome) for outcome in outcomes].count(FenceMismatch) == 1
    with pytest.raises(FenceMismatch):
        await streams.set_fence(CLICKS, 0, "c", "nobody's")
    with pytest.raises(ValidationFailed):
        await streams.set_fence(CLICKS, 0, "x" * 37)
    with pytest.raises(ShardNotFound):
        await streams.set_fence(CLICKS, 1, "c")


async def test_children_inherit_fence_of_their_parents(streams, reader):
    await streams.set_fence(WIDE, 1, "mine")

    await streams.resharder.split(WIDE, 1, HALF // 4 * 3)
    await streams.resharder.merge(WIDE, 2, 5)
    await streams.resharder.merge(WIDE, 4, 0)

    fenced = {state.shard.index: state.fenced for state in await reader.shards(WIDE)}
    assert fenced == {0: False, 1: True, 2: False, 3: False, 4: True, 5: True, 6: True, 7: True}
    await streams.append_to_shard(WIDE, 7, [Record(b"x")], MINE)
    with pytest.raises(FenceMismatch):
        await streams.append_to_shard(WIDE, 7, [Record(b"x")])
    with pytest.raises(ShardClosed):
        await streams.set_fence(WIDE, 1, "other")


async def test_fence_changed_during_interrupted_split_is_inherited(
    engines, streams, reader, monkeypatch
):
    await streams.set_fence(CLICKS, 0, "old")
    hot = streams._hot

    async def die(*_):
        raise StorageUnavailable("died")

    with monkeypatch.context() as broken:
        given, close = [], hot.close

        async def close_later(at, children, fence, epoch):
            given.append(fence)
            return await (die() if children else close(at, children, fence, epoch))

        broken.setattr(hot, "close", close_later)
        with pytest.raises(OutcomeUnknown):
            await streams.resharder.split(CLICKS, 0, HALF)
    await streams.set_fence(CLICKS, 0, "")

    await finish_reshards.work(engines)

    assert given == ["", "old"]
    assert [state.fenced for state in await reader.shards(CLICKS)] == [False, False, False]


# Hash keys


@pytest.mark.parametrize(("place", "shard"), [(0, 0), (HALF - 1, 1), (HALF, 2), (RING_SIZE - 1, 3)])
async def test_record_can_specify_hash_key(streams, reader, place, shard):
    appended = await streams.append(WIDE, [Record(b"x", "any key", hash_key=place)])

    read = await reader.read_shard(WIDE, shard, ReadFrom(offset=0))
    assert places(appended) == [(shard, 0)]
    assert [record.record for record in read.records] == [Record(b"x", "any key")]


async def test_hash_key_selects_child_when_definition_is_stale(streams, engines, monkeypatch):
    old = await engines.catalog.stream(CLICKS)
    await streams.resharder.split(CLICKS, 0, HALF)
    monkeypatch.setattr(engines.catalog._stream_reader._cache, "get_cached", lambda _: old)

    records = [Record(b"x", "k", hash_key=place) for place in (HALF, 0, HALF - 1)]
    appended = await streams.append(CLICKS, records)

    assert places(appended) == [(2, 0), (1, 0), (1, 1)]


@pytest.mark.parametrize("place", [-1, RING_SIZE])
async def test_hash_key_out_of_range_is_rejected(streams, place):
    with pytest.raises(ValidationFailed) as refused:
        await streams.append(WIDE, [Record(b"x"), Record(b"x", hash_key=place)])

    assert refused.value.faults[0].pointer == "/records/1/hash_key"


async def test_append_to_shard_rejects_hash_key(streams):
    with pytest.raises(ValidationFailed):
        await streams.append_to_shard(WIDE, 0, [Record(b"x", hash_key=0)])


# Retention


async def test_retention_by_count_keeps_newest_and_splits_entry(engines, streams, reader):
    await engines.catalog.put_stream(CLICKS, StreamSpec(retention_records=7))
    for _ in range(3):
        await entry(streams, 5)

    await streams.trim(CLICKS, 1_000)

    [state] = await reader.shards(CLICKS)
    assert (state.start, state.next) == (8, 15)
    read = await reader.read_shard(CLICKS, 0, ReadFrom(offset=8))
    assert [record.offset for record in read.records] == list(range(8, 15))
    assert read.records[0].record.data == b"3"
    with pytest.raises(OffsetExpired):
        await reader.read_shard(CLICKS, 0, ReadFrom(offset=7))


async def test_shortest_retention_applies(engines, streams, reader, clock):
    spec = StreamSpec(retention_ms=60_000, retention_records=100, retention_bytes=10_000_000)
    await engines.catalog.put_stream(CLICKS, spec)
    await entry(streams, 5)
    clock.advance(ms=60_000)
    await entry(streams, 5)

    await streams.trim(CLICKS, 1_000)

    [state] = await reader.shards(CLICKS)
    assert (state.start, state.next) == (5, 10)


async def test_nothing_expires_without_retention(engines, streams, reader, clock):
    await engines.catalog.put_stream(CLICKS, StreamSpec(retention_ms=None))
    await entry(streams, 5)
    clock.advance(ms=100 * 365 * 86_400_000)

    await streams.trim(CLICKS, 1_000)

    [state] = await reader.shards(CLICKS)
    assert (state.start, state.next) == (0, 5)


@pytest.mark.parametrize("before", range(11))
async def test_shard_is_truncated_at_any_offset(streams, reader, before):
    await entry(streams, 5)
    await entry(streams, 5)

    start = await streams.truncate(CLICKS, 0, before)

    read = await reader.read_shard(CLICKS, 0, ReadFrom(offset=before))
    assert start == before
    assert [record.offset for record in read.records] == list(range(before, 10))
    assert await streams.truncate(CLICKS, 0, 0) == before
    assert places(await streams.append(CLICKS, [Record(b"x")])) == [(0, 10)]


async def test_truncation_beyond_end_is_rejected(streams, reader):
    await entry(streams, 5)

    with pytest.raises(OffsetOutOfRange):
        await streams.truncate(CLICKS, 0, 6)
    with pytest.raises(ValidationFailed):
        await streams.truncate(CLICKS, 0, -1)
    assert len((await reader.read_shard(CLICKS, 0, ReadFrom(offset=0))).records) == 5


async def test_closed_shard_can_be_truncated_and_expires(streams, clock):
    await entry(streams, 5)
    await streams.resharder.split(CLICKS, 0, HALF)
    await streams.truncate(CLICKS, 0, 5)
    clock.advance(ms=86_400_000)

    assert await streams.expire_shards(CLICKS) == 1


# Event times


async def event_times(reader) -> list[int | None]:
    read = await reader.read_shard(CLICKS, 0, ReadFrom(offset=0))
    return [record.record.event_time_ms for record in read.records]


async def test_producer_event_times_are_stored(streams, reader):
    await streams.append(CLICKS, [Record(b"x", event_time_ms=7), Record(b"x")])

    assert await event_times(reader) == [7, None]


async def test_arrival_time_stream_drops_event_times(engines, streams, reader):
    await engines.catalog.put_stream(CLICKS, StreamSpec(event_times=EventTimes.ARRIVAL))

    await streams.append(CLICKS, [Record(b"x", event_time_ms=7), Record(b"x")])

    assert await event_times(reader) == [None, None]


async def test_missing_event_time_is_rejected_when_required(engines, streams, reader):
    await engines.catalog.put_stream(CLICKS, StreamSpec(event_times=EventTimes.CLIENT_REQUIRE))

    with pytest.raises(ValidationFailed) as refused:
        await streams.append(CLICKS, [Record(b"x", event_time_ms=7), Record(b"x")])

    assert refused.value.faults[0].pointer == "/records/1/event_time"
    await streams.append_to_shard(CLICKS, 0, [Record(b"x", event_time_ms=7)])
    assert await event_times(reader) == [7]


@pytest.mark.parametrize(("off_ms", "taken"), [(0, True), (60_000, True), (60_001, False)])
async def test_event_time_skew_is_limited(engines, streams, reader, clock, off_ms, taken):
    await engines.catalog.put_stream(CLICKS, StreamSpec(event_time_skew_ms_max=60_000))
    for sign in (1, -1):
        record = Record(b"x", event_time_ms=clock.now_ms() + sign * off_ms)
        if taken:
            await streams.append(CLICKS, [record])
        else:
            with pytest.raises(ValidationFailed):
                await streams.append(CLICKS, [record])

    assert len(await event_times(reader)) == (2 if taken else 0)


# On demand


async def push(streams, name: StreamName, count: int) -> None:
    for start in range(0, count, 1_000):
        records = [Record(b"x", f"key {start + number}") for number in range(1_000)]
        await streams.append(name, records)


async def test_on_demand_stream_scales_with_load(engines, streams, clock):
    name = StreamName("elastic")
    await engines.catalog.put_stream(name, StreamSpec(mode=StreamMode.ON_DEMAND))
    await scale_streams.work(engines)

    await push(streams, name, 49_000)
    early = await scale_streams.work(engines)
    clock.advance(ms=60_000)
    split = await scale_streams.work(engines)
    measured_anew = await scale_streams.work(engines)
    for _ in range(62):
        clock.advance(ms=60_000)
        await scale_streams.work(engines)

    stream = await engines.catalog.fresh_stream(name)
    assert (early, split, measured_anew) == (0, 1, 0)
    assert [shard.parents for shard in stream.shards] == [(), (0,), (0,), (1, 2)]
    assert [shard.index for shard in stream.open_shards] == [3]


async def test_provisioned_stream_keeps_its_shards(engines, streams, clock):
    await scale_streams.work(engines)
    await push(streams, CLICKS, 60_000)
    clock.advance(ms=60_000)

    assert await scale_streams.work(engines) == 0
    assert await streams.scale(CLICKS) == 0


async def test_offset_jump_of_new_epoch_is_not_load(engines, streams, reader, clock, redis_url):
    name = StreamName("elastic")
    stream, *_ = await engines.catalog.put_stream(name, StreamSpec(mode=StreamMode.ON_DEMAND))
    await push(streams, name, 1_000)
    await scale_streams.work(engines)
    with redis.Redis.from_url(redis_url) as store:
        store.delete(STORE_KEY)
    streams._provisioner._epoch._run_id = ""
    await streams._provisioner._epoch.check()
    await streams.append(name, [Record(b"x")])
    [state] = await reader.shards(name)

    loads = []
    for _ in range(3):
        clock.advance(ms=60_000)
        loads.append(await streams._load(stream, stream.shards[0]))

    assert state.next >= 10_000
    assert loads == [None, Load(0, 0, 60_000), Load(0, 0, 120_000)]


# The key index

INDEXED = StreamName("indexed")


@pytest.fixture
async def indexed(engines, streams):
    await engines.catalog.put_stream(INDEXED, StreamSpec(key_index=True, retention_ms=60_000))
    return streams


async def latest(reader, key: str) -> bytes:
    _, found = await reader.latest_of_key(INDEXED, key)
    assert found.record.key == key
    return bytes(found.record.data)


async def test_latest_record_of_key_is_found(indexed, reader):
    await indexed.append(INDEXED, [Record(b"1", "a"), Record(b"2", "b"), Record(b"3", "a")])
    await indexed.append(INDEXED, [Record(b"4", "c"), Record(b"-")], idempotency_key="k")
    await indexed.append_to_shard(
        INDEXED, 0, [Record(b"5", "d")], AppendCondition(expected_offset=5)
    )

    found = [await latest(reader, key) for key in "abcd"]

    assert found == [b"3", b"2", b"4", b"5"]
    with pytest.raises(RecordNotFound):
        await reader.latest_of_key(INDEXED, "e")
    with pytest.raises(ValidationFailed):
        await reader.latest_of_key(INDEXED, "")
    with pytest.raises(ValidationFailed):
        await reader.latest_of_key(CLICKS, "a")


async def test_appends_that_share_flush_are_indexed(indexed, reader):
    await asyncio.gather(
        *(indexed.append(INDEXED, [Record(b"%d" % n, f"key {n}")]) for n in range(50))
    )

    assert [await latest(reader, f"key {n}") for n in range(50)] == [b"%d" % n for n in range(50)]


async def test_columnar_appends_are_indexed(indexed, reader):
    await asyncio.gather(
        indexed.append_columns(INDEXED, Columns([b"1", b"2", b"3"], ["a", "b", "a"])),
        indexed.append_columns(INDEXED, Columns([b"-"])),
        indexed.append(INDEXED, [Record(b"4", "c")]),
        indexed.append_columns(INDEXED, Columns([b"5", b"6"], ["d", ""])),
    )

    assert [await latest(reader, key) for key in "abcd"] == [b"3", b"2", b"4", b"5"]


async def test_key_index_survives_reshard(indexed, reader):
    keys = [f"key {number}" for number in range(12)]
    await indexed.append(INDEXED, [Record(b"old", key) for key in keys])
    await indexed.resharder.set_shard_count(INDEXED, 3)
    await indexed.append(INDEXED, [Record(b"new", key) for key in keys[:4]])
    await indexed.resharder.set_shard_count(INDEXED, 2)

    found = [await latest(reader, key) for key in keys]

    assert found == [b"new"] * 4 + [b"old"] * 8


async def test_expired_record_is_not_found_and_its_key_is_forgotten(
    engines, indexed, reader, clock
):
    await indexed.append(INDEXED, [Record(b"old", "a"), Record(b"old", "b")])
    clock.advance(ms=60_000)
    await indexed.append(INDEXED, [Record(b"new", "b")])
    await indexed.trim(INDEXED, 1_000)

    with pytest.raises(RecordNotFound):
        await reader.latest_of_key(INDEXED, "a")
    assert await latest(reader, "b") == b"new"
    stream = await engines.catalog.stream(INDEXED)
    assert await indexed.sweep_key_index(stream) == 1
    assert await indexed.sweep_key_index(stream) == 0
    assert await latest(reader, "b") == b"new"


async def test_reenabled_index_starts_empty(engines, indexed, reader):
    """An index that was switched off would return a record that is not the latest any more."""
    await indexed.append(INDEXED, [Record(b"1", "a"), Record(b"1", "b")])
    await engines.catalog.put_stream(INDEXED, StreamSpec())
    await indexed.append(INDEXED, [Record(b"2", "a")])
    await engines.catalog.put_stream(INDEXED, StreamSpec(key_index=True))

    with pytest.raises(RecordNotFound):
        await reader.latest_of_key(INDEXED, "a")
    await indexed.append(INDEXED, [Record(b"3", "b")])
    with pytest.raises(RecordNotFound):
        await reader.latest_of_key(INDEXED, "a")
    assert await latest(reader, "b") == b"3"


async def test_reenabled_index_does_not_return_stale_parent_record(engines, indexed, reader):
    await indexed.append(INDEXED, [Record(b"1", "a")])
    await indexed.resharder.split(INDEXED, 0, HALF)
    await engines.catalog.put_stream(INDEXED, StreamSpec())
    await indexed.append(INDEXED, [Record(b"2", "a")])
    await engines.catalog.put_stream(INDEXED, StreamSpec(key_index=True))

    with pytest.raises(RecordNotFound):
        await reader.latest_of_key(INDEXED, "a")
    await indexed.append(INDEXED, [Record(b"3", "a")])
    assert await latest(reader, "a") == b"3"
