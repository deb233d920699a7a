"""The verbs of a stream, one rule at a time; `tests/stateful` combines them."""

import pytest

from storage.domain.errors import (
    MessageTooLarge,
    OffsetExpired,
    OffsetOutOfRange,
    ShardNotFound,
    StreamNotFound,
)
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.stream import Appended, ReadFrom, StreamSpec

CLICKS = StreamName("clicks")
WIDE = StreamName("wide")


@pytest.fixture
async def streams(engines):
    await engines.catalog.put_stream(
        CLICKS, StreamSpec(retention_ms=60_000, record_bytes_max=1_000)
    )
    await engines.catalog.put_stream(WIDE, StreamSpec(shards=16))
    return engines.streams


def data(read) -> list[bytes]:
    return [record.record.data for record in read.records]


async def test_records_of_key_share_shard_in_order(streams, reader):
    for number in range(20):
        await streams.append(WIDE, [Record(b"%d" % number, "one"), Record(b"-", f"other {number}")])

    reads = (await reader.read(WIDE, {})).shards

    [of_one] = [
        read for read in reads if any(record.record.key == "one" for record in read.records)
    ]
    assert [record.record.data for record in of_one.records if record.record.key == "one"] == [
        b"%d" % number for number in range(20)
    ]
    assert sum(len(read.records) for read in reads) == 40


async def test_batch_over_many_shards_is_answered_per_record(streams):
    records = [Record(b"x", f"key {number}") for number in range(100)]

    appended = await streams.append(WIDE, records)

    assert all(isinstance(one, Appended) for one in appended)
    assert len({(one.shard, one.offset) for one in appended if isinstance(one, Appended)}) == 100


async def test_read_is_repeatable(streams, reader):
    await streams.append(CLICKS, [Record(b"%d" % number) for number in range(10)])

    first = await reader.read_shard(CLICKS, 0, ReadFrom(offset=3), records_max=4)
    again = await reader.read_shard(CLICKS, 0, ReadFrom(offset=3), records_max=4)

    assert data(first) == [b"3", b"4", b"5", b"6"]
    assert first == again
    assert first.next_offset == 7


async def test_read_stops_at_byte_limit_but_returns_one_record(streams, reader):
    for number in range(5):
        await streams.append(CLICKS, [Record(b"%d" % number * 900)])

    some = await reader.read_shard(CLICKS, 0, ReadFrom(offset=0), bytes_max=2_000)
    shard = await reader.read_shard(CLICKS, 0, ReadFrom(offset=0), bytes_max=1)

    assert len(some.records) == 2
    assert len(shard.records) == 1


async def test_read_outside_bounds_is_rejected(streams, reader, clock):
    await streams.append(CLICKS, [Record(b"old")])
    clock.advance(ms=60_000)
    await streams.append(CLICKS, [Record(b"new")])
    await streams.trim(CLICKS, 1_000)

    with pytest.raises(OffsetExpired) as expired:
        await reader.read_shard(CLICKS, 0, ReadFrom(offset=0))
    with pytest.raises(OffsetOutOfRange):
        await reader.read_shard(CLICKS, 0, ReadFrom(offset=3))
    assert expired.value.facts["earliest_offset"] == 1


async def test_cursor_over_expired_records_gets_gap_and_continues(streams, reader, clock):
    await streams.append(CLICKS, [Record(b"old")] * 3)
    clock.advance(ms=60_000)
    await streams.append(CLICKS, [Record(b"new")])
    await streams.trim(CLICKS, 1_000)

    [read] = (await reader.read(CLICKS, {0: 1})).shards

    assert read.gap is not None
    assert (read.gap.first, read.gap.next, read.gap.reason) == (1, 3, "expired")
    assert data(read) == [b"new"]


async def test_retention_by_bytes_keeps_newest(engines, streams, reader):
    small = StreamName("small")
    await engines.catalog.put_stream(small, StreamSpec(retention_bytes=3_000))
    for number in range(10):
        await streams.append(small, [Record(b"%d" % number * 900)])

    await streams.trim(small, 1_000)

    [state] = await reader.shards(small)
    assert (state.start, state.next) == (7, 10)
    [read] = (await reader.read(small, {})).shards
    assert [record.offset for record in read.records] == [7, 8, 9]


async def test_headers_and_event_times_round_trip(streams, reader):
    record = Record(b"x", "k", (("traceparent", "", b"00-1-2-01"),), 1_234)
    await streams.append(CLICKS, [record])

    [read] = (await reader.read(CLICKS, {})).shards

    assert [each_record.record for each_record in read.records] == [record]


async def test_oversized_record_rejects_batch(streams, reader):
    with pytest.raises(MessageTooLarge):
        await streams.append(CLICKS, [Record(b"fine"), Record(b"x" * 1_001)])

    [state] = await reader.shards(CLICKS)
    assert state.next == 0


async def test_unknown_stream_is_not_found(streams, reader):
    with pytest.raises(StreamNotFound):
        await reader.read(StreamName("nowhere"), {})
    with pytest.raises(ShardNotFound):
        await reader.read_shard(CLICKS, 1, ReadFrom(offset=0))


async def test_recreated_stream_starts_empty(engines, streams, reader):
    await streams.append(CLICKS, [Record(b"old")])

    await engines.catalog.delete_stream(CLICKS)
    await engines.catalog.put_stream(CLICKS, StreamSpec())

    [read] = (await reader.read(CLICKS, {})).shards
    assert read.records == []
    assert read.tip == 0
