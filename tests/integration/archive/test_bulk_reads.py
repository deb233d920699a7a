"""Bulk reads of a log, by which the archive is written."""

import pytest

from storage.domain.log.address import LogAddress
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import LogRecord, ReadFrom, StreamSpec
from storage.hot_store.log_store import EntryRange
from storage.parquet.record_schema import batch_of, records_of
from storage.redis.streams.range_reader import RedisRangeReader

pytestmark = pytest.mark.one_store

CLICKS = StreamName("clicks")
ORDERS = QueueName("orders")


@pytest.fixture
async def at(engines) -> LogAddress:
    stream, *_ = await engines.catalog.put_stream(CLICKS, StreamSpec())
    return LogAddress("default", stream.shards[0].log_id)


@pytest.fixture
def ranges(engines) -> RedisRangeReader:
    return RedisRangeReader(engines.streams._hot._pipeline)


async def fill(engines, *counts: int) -> list[LogRecord]:
    """Append entries of the given numbers of records; returns the log's records as read."""
    for count in counts:
        await engines.streams.append(
            CLICKS, [Record(b"%d" % nth, f"k{nth}") for nth in range(count)]
        )
    return [*(await engines.record_reader.read_shard(CLICKS, 0, ReadFrom(tail=10_000))).records]


def records(found: EntryRange, first: int, end: int) -> list[LogRecord]:
    return records_of(batch_of(found.entries, first, end, 0))


async def test_range_is_read_entry_by_entry(engines, at, ranges):
    held = await fill(engines, 3, 1, 4)

    read = await ranges.read(at, 0, 8)

    assert (read.start, read.next, read.go_on) == (0, 8, 8)
    assert [(entry.first, entry.count) for entry in read.entries] == [(0, 3), (3, 1), (4, 4)]
    assert [entry.bytes_before for entry in read.entries][1] == read.entries[0].size_bytes
    assert records(read, 0, 8) == held


async def test_range_can_start_and_end_inside_entries(engines, at, ranges):
    held = await fill(engines, 5, 5)

    read = await ranges.read(at, 2, 7)

    assert read.go_on == 7
    assert records(read, 2, 7) == held[2:7]


async def test_long_range_is_read_in_several_calls(engines, at, ranges):
    held = await fill(engines, 5, 5, 5, 5)
    found, first = [], 0

    while first < 20:
        read = await ranges.read(at, first, 20, bytes_max=1)
        assert len(read.entries) == 1
        found += records(read, first, 20)
        first = read.go_on

    assert found == held


async def test_range_below_start_reports_start_of_log(engines, at, ranges):
    await fill(engines, 5, 5)
    await engines.streams.truncate(CLICKS, 0, 7)

    read = await ranges.read(at, 2, 10)

    assert (read.start, read.go_on, read.entries) == (7, 7, [])


async def test_range_at_end_of_log_is_empty(engines, at, ranges):
    await fill(engines, 5)

    read = await ranges.read(at, 5, 9)

    assert (read.next, read.go_on, read.entries) == (5, 5, [])


async def test_stream_view_range_equals_its_records(engines, ranges):
    queue, *_ = await engines.catalog.put_queue(ORDERS, QueueSpec(stream_view=True))
    await engines.queues.send(ORDERS, [NewMessage(b"a"), NewMessage(b"b", group="g")])
    read = await engines.record_reader.read_shard(StreamName("orders"), 0, ReadFrom(offset=0))

    found = await ranges.read(LogAddress("default", queue.log_id, True), 0, 2)

    assert records(found, 0, 2) == read.records
    assert found.entries[1].bytes_before == found.entries[0].size_bytes
