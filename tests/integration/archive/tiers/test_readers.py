"""Groups, stream views and readers of closed shards read the archive like any reader."""

import pytest

from storage.domain import limits
from storage.domain.archive import LogBounds
from storage.domain.groups.group import GroupSpec, ResetSpec, ResetTo
from storage.domain.log.address import LogAddress
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import RING_SIZE, ReadFrom, StreamSpec, Tier
from tests.archive_steps import archive_stream
from tests.integration.archive.tiers.tier_reads import HOUR, READERS, fetch, offsets, read
from tests.tiered_stream import CLICKS, append, move_to_archive

pytestmark = pytest.mark.one_store


async def test_group_reads_from_archive_into_hot_store(engines, settings):
    await append(engines, 10)
    await move_to_archive(engines, settings)
    await append(engines, 5)
    await engines.groups.put(READERS, GroupSpec(stream=CLICKS.name))

    reads = [await fetch(engines, 4) for _ in range(5)]

    assert [offset for each_read in reads for offset in offsets(each_read)] == list(range(15))
    assert [each_read.tier for each_read in reads[:3]] == [Tier.ARCHIVE] * 3
    assert reads[-1].tier is Tier.HOT


async def test_lag_and_time_to_loss_include_archived_records(engines, settings, clock):
    spec = StreamSpec(hot_retention_ms=0, retention_ms=100 * HOUR)
    await engines.catalog.put_stream(CLICKS, spec)
    await engines.groups.put(READERS, GroupSpec(stream=CLICKS.name))
    await append(engines, 10)
    clock.advance(ms=HOUR)
    await move_to_archive(engines, settings)
    await append(engines, 5)

    [lag] = await engines.groups.lags.by_shard(READERS)

    assert (lag.position, lag.start, lag.tip, lag.records, lag.expired) == (0, 0, 15, 15, 0)
    assert (lag.lag_ms, lag.loss_in_ms) == (HOUR, 99 * HOUR)


@pytest.mark.parametrize(
    ("spec", "offset"),
    [
        (ResetSpec(to=ResetTo.EARLIEST), 0),
        (ResetSpec(to=ResetTo.OFFSETS, offsets={0: 3}), 3),
        (ResetSpec(to=ResetTo.LATEST), 20),
        (ResetSpec(to=ResetTo.TIME, time_ms=1_700_000_000_001), 10),
    ],
)
async def test_group_is_reset_into_archive(engines, settings, clock, spec, offset):
    await engines.groups.put(READERS, GroupSpec(stream=CLICKS.name))
    await append(engines, 10)
    clock.advance(ms=HOUR)
    await append(engines, 10)
    await move_to_archive(engines, settings)
    await fetch(engines, 1_000)

    [reset] = await engines.groups.positions.reset(READERS, spec, dry_run=False)

    assert (reset.before, reset.after, reset.expired) == (20, offset, 0)
    fetched_records = await fetch(engines, 1)
    assert [record.offset for record in fetched_records.records] == [offset][: 20 - offset]


async def test_stream_view_is_read_across_tiers(engines, settings):
    orders, view = QueueName("orders"), StreamName("orders")
    await engines.catalog.put_queue(orders, QueueSpec(stream_view=True, archive=True))
    await engines.queues.send(orders, [NewMessage(b"%d" % nth) for nth in range(10)])
    before = await read(engines, ReadFrom(offset=0), view)
    await archive_stream(engines, settings, view)
    stream = await engines.catalog.stream(view)
    at = LogAddress("default", stream.stream_id, is_view=True)
    await engines.streams._hot.trim(at, LogBounds(0, None, None, archived=10), 1_000, "")
    await engines.queues.send(orders, [NewMessage(b"10")])

    reads = [await read(engines, ReadFrom(offset=offset), view) for offset in (0, 10)]

    assert reads[0].records == before.records
    assert [each_read.tier for each_read in reads] == [Tier.ARCHIVE, Tier.HOT]


async def test_closed_shard_stays_while_archived_records_remain(engines, settings, clock):
    spec = StreamSpec(hot_retention_ms=0, retention_ms=100 * limits.DAY_MS)
    await engines.catalog.put_stream(CLICKS, spec)
    await append(engines, 10)
    clock.advance(ms=2_000)
    await engines.streams.resharder.split(CLICKS, 0, RING_SIZE // 2)
    await move_to_archive(engines, settings)
    clock.advance(ms=10 * limits.DAY_MS)

    assert await engines.streams.expire_shards(CLICKS) == 0
    assert offsets(await read(engines, ReadFrom(offset=0))) == list(range(10))

    await engines.streams.truncate(CLICKS, 0, 10)
    assert await engines.streams.expire_shards(CLICKS) == 1


async def test_disabling_archive_keeps_archived_records(engines, settings):
    await append(engines, 10)
    await move_to_archive(engines, settings)
    await engines.catalog.put_stream(CLICKS, StreamSpec(archive=False))

    assert offsets(await read(engines, ReadFrom(time_ms=0))) == list(range(10))
