"""Backlog of a scan: what is behind a read, as columns."""

import pyarrow as pa
import pytest

from spark_worker.views.inputs.backlog import BatchRecords, with_backlog
from spark_worker.views.planning.records import RAW, raw_table
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.log.record_batch import Record
from storage.domain.streams.lineage import FULLY_READ
from storage.domain.streams.stream import ReadFrom, StreamRead, StreamSpec
from tests.integration.views.conftest import STREAM

pytestmark = pytest.mark.one_store

RECORDS = 40


@pytest.fixture
async def read(engines: Storage) -> StreamRead:
    """The first records of a stream of two shards."""
    await engines.catalog.put_stream(STREAM, StreamSpec(shards=2))
    records = [
        Record(b"%d" % nth, key=f"k{nth}", headers=(("n", "", b"%d" % nth),), event_time_ms=nth)
        for nth in range(RECORDS)
    ]
    await engines.streams.append(STREAM, records)
    return await engines.record_reader.read(STREAM, {}, records_max=6)


def rows_of(records: BatchRecords) -> list[tuple[int, int]]:
    """Return the shard and the offset of each record of a batch."""
    table = pa.Table.from_batches(records.columns, RAW)
    read = [(shard.shard, one.offset) for shard in records.reads[0].shards for one in shard.records]
    return [*read, *zip(table["shard"].to_pylist(), table["offset"].to_pylist(), strict=True)]


async def test_backlog_has_the_records_behind_a_read(engines, read):
    records = await with_backlog(engines, STREAM, read, 1_000, None)

    tips = {shard.shard: shard.tip for shard in read.shards}
    assert records.reads[0].positions == tips
    assert sorted(rows_of(records)) == [
        (shard, offset) for shard, tip in tips.items() for offset in range(tip)
    ]
    for shard in read.shards:
        where = ReadFrom(offset=shard.next_offset)
        rest = (await engines.record_reader.read_shard(STREAM, shard.shard, where)).records
        [batch] = [one for one in records.columns if one["shard"][0].as_py() == shard.shard]
        assert pa.Table.from_batches([batch]) == raw_table({shard.shard: rest}, None)


async def test_backlog_is_shared_by_shards(engines, read):
    records = await with_backlog(engines, STREAM, read, 10, None)

    assert [batch.num_rows for batch in records.columns] == [5, 5]
    for shard in read.shards:
        assert records.reads[0].positions[shard.shard] == shard.next_offset + 5


async def test_backlog_ends_at_its_bytes(engines, read, monkeypatch):
    monkeypatch.setattr(limits, "VIEW_BACKLOG_BYTES", 2)

    records = await with_backlog(engines, STREAM, read, 1_000, None)

    positions = records.reads[0].positions
    assert sorted(rows_of(records)) == [
        (shard, offset) for shard, end in sorted(positions.items()) for offset in range(end)
    ]
    assert all(0 < batch.num_rows < 5 for batch in records.columns)


async def test_backlog_does_not_pass_caps(engines, read):
    first, second = (shard.next_offset for shard in read.shards)
    caps = {0: first + 2, 1: second}

    records = await with_backlog(engines, STREAM, read, 1_000, caps)

    assert records.reads[0].positions == caps
    assert [batch.num_rows for batch in records.columns] == [2]


async def test_shard_that_the_other_reader_has_left_has_a_backlog(engines, read):
    """A parent shard that the active revision has read to its end is not among its positions."""
    records = await with_backlog(engines, STREAM, read, 1_000, {1: FULLY_READ})

    assert records.reads[0].positions == {shard.shard: shard.tip for shard in read.shards}


async def test_backlog_leaves_out_what_has_expired(engines, read):
    [first, second] = read.shards
    await engines.streams.truncate(STREAM, 0, first.next_offset + 1)

    records = await with_backlog(engines, STREAM, read, 1_000, None)

    assert records.reads[0].positions == {0: first.next_offset, 1: second.tip}


async def test_read_at_the_end_has_no_backlog(engines, read):
    positions = {shard.shard: shard.tip for shard in read.shards}
    await engines.streams.append(STREAM, [Record(b"last", key="k1")])
    last = await engines.record_reader.read(STREAM, positions)

    assert await with_backlog(engines, STREAM, last, 1_000, None) == BatchRecords([last])
