"""Reads across both tiers return the same offsets as reads of one."""

import asyncio

import pytest

from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.stream import (
    RING_SIZE,
    LogRecord,
    ReadFrom,
    ShardRead,
    StreamSpec,
    Tier,
)
from tests.integration.archive.tiers.tier_reads import (
    ALL_HOT,
    HOUR,
    NOTHING_HOT,
    offsets,
    read,
    read_on,
)
from tests.tiered_stream import CLICKS, append, move_to_archive

pytestmark = pytest.mark.one_store


def records_of(reads: list[ShardRead]) -> list[LogRecord]:
    return [record for each_read in reads for record in each_read.records]


@pytest.mark.parametrize("records_max", [1, 7, 10_000])
async def test_continued_reads_return_every_record_once_across_tiers(
    engines, settings, clock, records_max
):
    await engines.catalog.put_stream(CLICKS, ALL_HOT)
    await append(engines, 10, 5)
    clock.advance(ms=HOUR)
    await append(engines, 20)
    before = records_of(await read_on(engines, 0, records_max))
    await engines.catalog.put_stream(CLICKS, NOTHING_HOT)
    await move_to_archive(engines, settings)
    await append(engines, 8)
    reads = await read_on(engines, 0, records_max)

    assert records_of(reads)[:35] == before
    assert [offset for each_read in reads for offset in offsets(each_read)] == list(range(43))
    assert all(
        each_read.gap is None and (each_read.start, each_read.tip) == (0, 43) for each_read in reads
    )
    tiers = [each_read.tier for each_read in reads]
    assert tiers == sorted(tiers, key=[Tier.ARCHIVE, Tier.HOT].index)
    assert {*tiers} == {Tier.ARCHIVE, Tier.HOT}
    assert {each_read.tier for each_read in reads if each_read.records[0].offset >= 35} == {
        Tier.HOT
    }


async def test_records_in_both_tiers_are_read_hot(engines, settings):
    await engines.catalog.put_stream(CLICKS, ALL_HOT)
    await append(engines, 10)

    await move_to_archive(engines, settings)

    assert (await read(engines, ReadFrom(offset=0))).tier is Tier.HOT


async def test_read_stops_by_records_and_bytes(engines, settings):
    await append(engines, 100)
    await move_to_archive(engines, settings)

    few = await read(engines, ReadFrom(offset=40), records_max=7)
    small = await read(engines, ReadFrom(offset=40), bytes_max=9)
    least = await read(engines, ReadFrom(offset=40), bytes_max=1)

    assert offsets(few) == list(range(40, 47))
    assert offsets(small) == list(range(40, 44))
    assert offsets(least) == [40]
    assert (few.next_offset, few.tip, few.tier) == (47, 100, Tier.ARCHIVE)


async def test_key_headers_and_times_are_kept(engines, settings, clock):
    headers = (("colour", "String", b"red"), ("n", "", b"\xff"))
    records = [Record(b"\x00\xff", "clé", headers, 5), Record(b""), Record(b"x", "k", (), None)]
    await engines.streams.append_to_shard(CLICKS, 0, records)
    arrival_ms = clock.now_ms()
    await move_to_archive(engines, settings)

    found = await read(engines, ReadFrom(offset=0))

    assert found.records == [
        LogRecord(nth, arrival_ms, record) for nth, record in enumerate(records)
    ]


async def test_archive_reader_lag_is_reported(engines, settings, clock):
    await append(engines, 10)
    clock.advance(ms=5_000)
    await move_to_archive(engines, settings)

    part = await read(engines, ReadFrom(offset=0), records_max=4)
    rest = await read(engines, ReadFrom(offset=4))

    assert (part.behind_ms, rest.behind_ms) == (5_000, 0)


async def test_oldest_record_is_in_archive(engines, settings):
    await append(engines, 10)
    await move_to_archive(engines, settings)
    await append(engines, 5)

    found = await read(engines, ReadFrom(time_ms=0), records_max=3)

    assert offsets(found) == [0, 1, 2]


async def test_read_from_time_finds_first_record_in_either_tier(engines, settings, clock):
    begun = clock.now_ms()
    for _ in range(4):
        await append(engines, 5, 5)
        clock.advance(ms=HOUR // 2)
    await move_to_archive(engines, settings)
    await append(engines, 5)

    first = {
        late: (await read(engines, ReadFrom(time_ms=begun + late), records_max=1)).records[0].offset
        for late in (
            -1,
            0,
            1,
            HOUR // 2,
            HOUR,
            HOUR + 1,
            HOUR * 3 // 2,
            HOUR * 3 // 2 + 1,
            2 * HOUR,
        )
    }
    none = await read(engines, ReadFrom(time_ms=begun + 2 * HOUR + 1))

    assert [*first.values()] == [0, 0, 10, 10, 20, 30, 30, 40, 40]
    assert (none.records, none.next_offset) == ([], 45)


@pytest.mark.parametrize(("tail", "first"), [(3, 12), (5, 10), (6, 9), (15, 0), (1_000, 0)])
async def test_tail_read_reaches_into_archive(engines, settings, tail, first):
    await append(engines, 10)
    await move_to_archive(engines, settings)
    await append(engines, 5)

    found = await read(engines, ReadFrom(tail=tail))

    assert offsets(found)[0] == first
    assert found.tier is (Tier.HOT if first >= 10 else Tier.ARCHIVE)


async def test_reader_at_tip_waits_for_next_record(engines, settings):
    await append(engines, 10)
    await move_to_archive(engines, settings)

    waiting = asyncio.create_task(read(engines, ReadFrom(offset=10), wait_ms=10_000))
    await asyncio.sleep(0)
    await append(engines, 1)

    assert offsets(await waiting) == [10]


async def test_all_shards_are_read_from_archive_into_hot_store(engines, settings):
    await engines.catalog.put_stream(StreamName("wide"), StreamSpec(shards=3, hot_retention_ms=0))
    wide = StreamName("wide")
    records = [Record(b"%d" % nth, f"k{nth}") for nth in range(60)]
    await engines.streams.append(wide, records[:40])
    await move_to_archive(engines, settings, wide)
    await engines.streams.append(wide, records[40:])

    actual_records: list[Record] = []
    positions: dict[int, int] = {}
    for _ in range(40):
        part = await engines.record_reader.read(wide, positions, records_max=9)
        actual_records += [record.record for shard in part.shards for record in shard.records]
        positions = part.positions

    assert sorted(actual_records, key=lambda record: int(record.data)) == records


async def test_children_are_read_after_archived_parents(engines, settings, clock):
    await append(engines, 10)
    clock.advance(ms=2_000)
    await engines.streams.resharder.split(CLICKS, 0, RING_SIZE // 2)
    await engines.streams.append(CLICKS, [Record(b"child", f"k{nth}") for nth in range(9)])
    await move_to_archive(engines, settings)

    first = await engines.record_reader.read(CLICKS, {})
    rest = await engines.record_reader.read(CLICKS, first.positions)

    [parent] = first.shards
    assert (offsets(parent), parent.ended) == (list(range(10)), True)
    assert first.tier is rest.tier is Tier.ARCHIVE
    assert sum(len(shard.records) for shard in rest.shards) == 9
