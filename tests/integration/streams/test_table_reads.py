"""Table reads: the same records, offsets, gaps and errors as record reads."""

import asyncio
import random

import pyarrow as pa
import pytest
import redis

from storage.bootstrap import Storage, open_storage
from storage.domain import limits
from storage.domain.archive import LogBounds
from storage.domain.errors import (
    ArchiveDamaged,
    OffsetExpired,
    OffsetOutOfRange,
    ShardNotFound,
    StorageBusy,
    StreamNotFound,
    ValidationFailed,
)
from storage.domain.limits import Limits
from storage.domain.log.address import LogAddress
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import (
    RING_SIZE,
    Gap,
    GapReason,
    LogRecord,
    ReadFrom,
    StreamSpec,
    Tier,
)
from storage.parquet.record_schema import RECORD_SCHEMA, records_of
from storage.redis.keys import log_keys
from storage.settings import StorageSettings
from storage.streams.arrow_reader import ArrowPage
from tests.archive_steps import archive_stream
from tests.tiered_stream import CLICKS, append, lose_hot_store, move_to_archive, restored_older_copy

pytestmark = pytest.mark.one_store

ALL_HOT = StreamSpec(hot_retention_ms=None)
NOTHING_HOT = StreamSpec(hot_retention_ms=0)


@pytest.fixture
async def engines(settings, clock):
    async with open_storage(settings, clock=clock, limits=Limits(outage_ms=10**15)) as storage:
        await storage.catalog.put_stream(CLICKS, NOTHING_HOT)
        yield storage


async def table(
    engines: Storage,
    offset: int,
    end: int | None = None,
    bytes_max: int = limits.TABLE_BYTES_MAX,
    name: StreamName = CLICKS,
    shard: int = 0,
) -> ArrowPage:
    return await engines.arrow_reader.read(name, shard, offset=offset, end=end, bytes_max=bytes_max)


def records_in(read: ArrowPage) -> list[LogRecord]:
    with pa.ipc.open_stream(read.encoded) as reader:
        assert reader.schema.equals(RECORD_SCHEMA, check_metadata=True)
        records = [record for batch in reader for record in records_of(batch)]
    assert len(records) == read.records
    return records


def offsets(read: ArrowPage) -> list[int]:
    return [record.offset for record in records_in(read)]


async def assert_reads_agree(engines: Storage, name: StreamName = CLICKS) -> None:
    """Assert that both kinds of read agree from every offset of a shard."""
    [state, *_] = await engines.record_reader.shards(name)
    for offset in range(state.start, state.next):
        shard = await engines.record_reader.read_shard(name, 0, ReadFrom(offset=offset))
        other = await table(engines, offset, name=name)

        assert records_in(other) == list(shard.records)
        told = (other.next_offset, other.start, other.tip, other.tier, other.gap)
        assert told == (shard.next_offset, shard.start, shard.tip, shard.tier, shard.gap)


async def test_table_read_equals_record_read_in_both_tiers(engines, settings, clock):
    headers = (("colour", "String", b"red"), ("n", "", b"\xff"))
    odd = [Record(b"\x00\xff", "clé", headers, 5), Record(b""), Record(b"x", "k", (), None)]
    await append(engines, 10, 5)
    await engines.streams.append_to_shard(CLICKS, 0, odd)
    clock.advance(ms=limits.HOUR_MS)
    await append(engines, 7)
    await move_to_archive(engines, settings)
    await engines.streams.append_to_shard(CLICKS, 0, odd)
    await append(engines, 4, 3)

    await assert_reads_agree(engines)
    assert {(await table(engines, at)).tier for at in (0, 24, 25, 30)} == {Tier.ARCHIVE, Tier.HOT}


async def test_read_respects_end_offset_and_byte_limit(engines, settings):
    await append(engines, 30, 30)
    await move_to_archive(engines, settings)
    await append(engines, 30, 30)
    chance = random.Random(4)

    for _ in range(60):
        offset = chance.randrange(119)
        end = chance.randint(offset + 1, 120)
        size = chance.choice([1, 17, 40, 10_000])
        actual_table = await table(engines, offset, end, size)

        read = offsets(actual_table)
        data = [len(str(record)) for record in read]
        assert read == list(range(offset, actual_table.next_offset))
        assert actual_table.next_offset <= end
        assert sum(data) <= size or len(data) == 1


async def test_continued_reads_return_every_record_once(engines, settings):
    await append(engines, 30, 30)
    await move_to_archive(engines, settings)
    await append(engines, 30)
    at, read = 0, list[int]()

    while at < 90:
        actual_table = await table(engines, at, 90, 20)
        read += offsets(actual_table)
        at = actual_table.next_offset

    assert read == list(range(90))


async def test_large_read_is_served_in_one_call(engines):
    await engines.catalog.put_stream(CLICKS, ALL_HOT)
    for _ in range(6):
        await engines.streams.append_to_shard(CLICKS, 0, [Record(b"x" * 1_000)] * 900)

    whole = await table(engines, 0)
    chosen_table = await table(engines, 0, bytes_max=4_500_000)

    assert (whole.records, whole.next_offset, whole.tip) == (5_400, 5_400, 5_400)
    assert (chosen_table.records, chosen_table.next_offset) == (4_500, 4_500)


async def test_read_at_tip_returns_empty_table(engines):
    await append(engines, 3)

    actual_table = await table(engines, 3)

    assert (
        offsets(actual_table),
        actual_table.next_offset,
        actual_table.tip,
        actual_table.ended,
    ) == ([], 3, 3, False)


async def test_read_of_closed_shard_reports_its_end(engines, settings, clock):
    await append(engines, 6)
    clock.advance(ms=2_000)
    await engines.streams.resharder.split(CLICKS, 0, RING_SIZE // 2)

    reads = [await table(engines, 0, 4), await table(engines, 4), await table(engines, 6)]
    await move_to_archive(engines, settings)
    archived = await table(engines, 4)

    assert [read.ended for read in reads] == [False, True, True]
    assert (archived.ended, archived.tier, offsets(archived)) == (True, Tier.ARCHIVE, [4, 5])


async def test_lost_records_are_reported_as_hole(engines, settings, redis_url):
    await engines.catalog.put_stream(CLICKS, ALL_HOT)
    await append(engines, 10)
    await archive_stream(engines, settings, CLICKS)
    await append(engines, 3)
    await lose_hot_store(engines, redis_url)
    [one] = await engines.streams.append_to_shard(CLICKS, 0, [Record(b"next")])

    gap = await table(engines, 10)
    cut = await table(engines, 10, 12)
    before = await table(engines, 4)

    assert gap.gap == Gap(10, one.offset, GapReason.HOLE)
    assert (offsets(gap), cut.gap, cut.next_offset) == ([], Gap(10, 12, GapReason.HOLE), 12)
    assert (offsets(before), before.gap, before.tier) == ([4, 5, 6, 7, 8, 9], None, Tier.ARCHIVE)
    assert offsets(await table(engines, one.offset)) == [one.offset]


async def test_hole_in_hot_store_ends_one_read_and_starts_next(engines, redis_url):
    await append(engines, 5, 5, 5)
    stream = await engines.catalog.stream(CLICKS)
    log = log_keys("default", stream.shards[0].log_id)[0]
    with redis.Redis.from_url(redis_url) as client:
        [_, middle, _] = client.xrange(log)
        client.xdel(log, middle[0])

    reads = [await table(engines, 0), await table(engines, 5), await table(engines, 7, 9)]

    assert [offsets(read) for read in reads] == [[0, 1, 2, 3, 4], [10, 11, 12, 13, 14], []]
    assert [read.gap for read in reads] == [
        None,
        Gap(5, 10, GapReason.HOLE),
        Gap(7, 9, GapReason.HOLE),
    ]
    assert [read.next_offset for read in reads] == [5, 15, 9]


async def test_archive_completes_older_copy_of_hot_store(engines, settings, redis_url):
    await engines.catalog.put_stream(CLICKS, ALL_HOT)
    await append(engines, 4)
    async with restored_older_copy(engines, redis_url):
        await append(engines, 6)
        await archive_stream(engines, settings, CLICKS)

    assert offsets(await table(engines, 7)) == [7, 8, 9]
    assert (await table(engines, 7)).tip == 10


async def test_expired_and_out_of_range_offsets_are_distinguished(engines, settings):
    await append(engines, 10, 10)
    await move_to_archive(engines, settings)
    await append(engines, 5)
    await engines.streams.truncate(CLICKS, 0, 13)

    with pytest.raises(OffsetExpired) as expired:
        await table(engines, 12)
    with pytest.raises(OffsetOutOfRange) as beyond:
        await table(engines, 26)

    assert expired.value.facts == {"earliest_offset": 13, "next_offset": 25}
    assert beyond.value.facts == {"next_offset": 25}
    assert offsets(await table(engines, 13)) == [13, 14, 15, 16, 17, 18, 19]


async def test_damaged_file_is_never_skipped(engines, settings, tmp_path):
    await append(engines, 10)
    await move_to_archive(engines, settings)
    await append(engines, 5)
    [file] = (tmp_path / "archive").rglob("*.parquet")
    sound = file.read_bytes()
    file.write_bytes(sound[:40] + bytes([sound[40] ^ 1]) + sound[41:])

    with pytest.raises(ArchiveDamaged):
        await table(engines, 0)
    assert offsets(await table(engines, 10)) == [10, 11, 12, 13, 14]


async def test_stream_view_is_readable_as_table_in_both_tiers(engines, settings):
    orders, view = QueueName("orders"), StreamName("orders")
    await engines.catalog.put_queue(orders, QueueSpec(stream_view=True, archive=True))
    await engines.queues.send(
        orders, [NewMessage(b"%d" % nth, content_type="text/plain") for nth in range(10)]
    )
    await assert_reads_agree(engines, view)
    await archive_stream(engines, settings, view)
    stream = await engines.catalog.stream(view)
    at = LogAddress("default", stream.stream_id, is_view=True)
    await engines.streams._hot.trim(at, LogBounds(0, None, None, archived=10), 1_000, "")
    await engines.queues.send(orders, [NewMessage(b"10")])

    await assert_reads_agree(engines, view)


async def test_read_without_archive_serves_hot_store_only(redis_url, database_url, clock):
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with open_storage(settings, clock=clock) as engines:
        await engines.catalog.put_stream(CLICKS, StreamSpec())
        await append(engines, 5)

        assert offsets(await table(engines, 2)) == [2, 3, 4]


@pytest.mark.parametrize(
    ("offset", "end", "size"), [(3, 3, 1), (5, 3, 1), (-1, 3, 1), (0, 3, 0), (0, 3, 2**24 + 1)]
)
async def test_invalid_read_is_rejected(engines, offset, end, size):
    with pytest.raises(ValidationFailed):
        await table(engines, offset, end, size)


async def test_unknown_stream_or_shard_is_not_found(engines):
    with pytest.raises(StreamNotFound):
        await table(engines, 0, name=StreamName("nowhere"))
    with pytest.raises(ShardNotFound):
        await table(engines, 0, shard=7)


async def test_excess_concurrent_reads_are_rejected_as_busy(engines):
    await append(engines, 5)
    calls = limits.TABLES_WAITING_MAX + 3

    done = await asyncio.gather(*(table(engines, 0) for _ in range(calls)), return_exceptions=True)

    refused = [one for one in done if isinstance(one, BaseException)]
    assert [type(one) for one in refused] == [StorageBusy] * 3
    assert sum(isinstance(one, ArrowPage) for one in done) == limits.TABLES_WAITING_MAX
