"""Records that neither tier has, and records that only one tier still has."""

import pytest

from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.errors import OffsetExpired, OffsetOutOfRange
from storage.domain.groups.group import GroupSpec
from storage.domain.log.record_batch import Record
from storage.domain.streams.stream import Gap, GapReason, ReadFrom, Tier
from tests.archive_steps import archive_stream
from tests.integration.archive.tiers.tier_reads import ALL_HOT, READERS, offsets, read, read_on
from tests.tiered_stream import CLICKS, append, lose_hot_store, move_to_archive, restored_older_copy

pytestmark = pytest.mark.one_store


async def test_offset_below_both_tiers_is_expired(engines, settings):
    await append(engines, 10, 10)
    await move_to_archive(engines, settings)
    await append(engines, 5)

    start = await engines.streams.truncate(CLICKS, 0, 13)

    assert start == 13
    with pytest.raises(OffsetExpired) as expired:
        await read(engines, ReadFrom(offset=12))
    assert expired.value.facts == {"earliest_offset": 13, "next_offset": 25}
    assert offsets(await read(engines, ReadFrom(offset=13)))[0] == 13
    assert offsets(await read(engines, ReadFrom(time_ms=0)))[0] == 13
    assert offsets(await read(engines, ReadFrom(tail=1_000)))[0] == 13
    [state] = await engines.record_reader.shards(CLICKS)
    assert (state.start, state.next) == (13, 25)


async def test_truncation_reaches_other_processes_within_one_second(engines, settings, clock):
    await append(engines, 10)
    await move_to_archive(engines, settings)
    async with open_storage(settings, clock=clock) as other:
        assert offsets(await read(other, ReadFrom(offset=2)))[0] == 2
        await engines.streams.truncate(CLICKS, 0, 5)

        clock.advance(ms=limits.ARCHIVE_EXTENT_MS)

        with pytest.raises(OffsetExpired):
            await read(other, ReadFrom(offset=2))


async def test_truncation_beyond_end_is_no_op(engines, settings):
    await append(engines, 10)
    await move_to_archive(engines, settings)

    with pytest.raises(OffsetOutOfRange):
        await engines.streams.truncate(CLICKS, 0, 11)

    assert offsets(await read(engines, ReadFrom(offset=0)))[0] == 0


async def test_truncated_records_are_not_archived(engines, settings):
    await append(engines, 10)
    await engines.streams.truncate(CLICKS, 0, 4)

    await move_to_archive(engines, settings)

    with pytest.raises(OffsetExpired) as expired:
        await read(engines, ReadFrom(offset=0))
    assert expired.value.facts["earliest_offset"] == 4


async def test_fully_truncated_shard_is_empty(engines, settings):
    await append(engines, 10)
    await move_to_archive(engines, settings)

    assert await engines.streams.truncate(CLICKS, 0, 10) == 10

    found = await read(engines, ReadFrom(time_ms=0))
    assert (found.records, found.gap, found.start, found.tip) == ([], None, 10, 10)


async def test_archived_records_survive_loss_of_hot_store(engines, settings, redis_url):
    await engines.catalog.put_stream(CLICKS, ALL_HOT)
    await append(engines, 10)
    await archive_stream(engines, settings, CLICKS)
    await append(engines, 3)

    await lose_hot_store(engines, redis_url)

    [one] = await engines.streams.append_to_shard(CLICKS, 0, [Record(b"next")])
    first, second, third = await read_on(engines, 0, 100)
    assert offsets(first) == list(range(10))
    assert second.gap == Gap(10, one.offset, GapReason.HOLE)
    assert [record.record.data for record in third.records] == [b"next"]
    assert [read.tier for read in (first, second, third)] == [Tier.ARCHIVE, Tier.ARCHIVE, Tier.HOT]


async def test_lag_after_loss_of_hot_store_counts_archived_records(engines, settings, redis_url):
    await engines.catalog.put_stream(CLICKS, ALL_HOT)
    await append(engines, 10)
    await archive_stream(engines, settings, CLICKS)
    await engines.groups.put(READERS, GroupSpec(stream=CLICKS.name))
    await append(engines, 3)

    await lose_hot_store(engines, redis_url)
    await engines.streams.append_to_shard(CLICKS, 0, [Record(b"next")])

    [lag] = await engines.groups.lags.by_shard(READERS)
    assert (lag.records, lag.expired) == (11, 0)


async def test_archive_completes_older_copy_of_hot_store(engines, settings, redis_url):
    await engines.catalog.put_stream(CLICKS, ALL_HOT)
    await append(engines, 4)
    async with restored_older_copy(engines, redis_url):
        await append(engines, 6)
        await archive_stream(engines, settings, CLICKS)

    at_its_end = await read(engines, ReadFrom(offset=4))
    beyond = await read(engines, ReadFrom(offset=7))
    [one] = await engines.streams.append_to_shard(CLICKS, 0, [Record(b"next")])
    reads = await read_on(engines, 0, 100)

    assert (offsets(at_its_end), at_its_end.next_offset) == ([], 4)  # reported once there is more
    assert offsets(beyond) == [7, 8, 9]
    assert [offset for read in reads[:2] for offset in offsets(read)] == list(range(10))
    assert reads[2].gap == Gap(10, one.offset, GapReason.HOLE)
