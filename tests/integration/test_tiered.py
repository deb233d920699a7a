"""Reading across the tiers: what left the hot store is read from the archive, with the same offsets and no seam."""

import asyncio
from pathlib import Path

import pytest
import redis

from storage.archive.local import LocalRoot
from storage.archive.roots import open_root
from storage.domain import limits
from storage.domain.batches import Record
from storage.domain.errors import (
    ArchiveDamaged,
    OffsetExpired,
    OffsetOutOfRange,
    StorageUnavailable,
)
from storage.domain.groups import Commit, GroupSpec, ResetSpec, ResetTo
from storage.domain.jobs import JobKind
from storage.domain.limits import Limits
from storage.domain.messages import NewMessage
from storage.domain.names import GroupName, QueueName, StreamName
from storage.domain.queues import QueueSpec
from storage.domain.streams import (
    RING_SIZE,
    Gap,
    LogRecord,
    ReadFrom,
    ShardRead,
    StreamSpec,
    Tier,
)
from storage.joining import join
from storage.lifespan import Storage, open_storage
from storage.postgres.manifest import ManifestRows
from storage.redis.keys import LogAddress, every_key
from storage.settings import StorageSettings
from tests.archiving import archive
from tests.tiers import CLICKS, append, lose_the_hot_store, to_archive

READERS = GroupName("readers")
HOUR = limits.HOUR_MS
ALL_HOT = StreamSpec(hot_retention_ms=None)
NOTHING_HOT = StreamSpec(hot_retention_ms=0)
NEVER_AWAY = Limits(outage_ms=10**15)  # time passes in leaps here, which is no outage


@pytest.fixture
async def engines(settings, clock):
    async with open_storage(settings, clock=clock, limits=NEVER_AWAY) as storage:
        await storage.catalog.put_stream(CLICKS, NOTHING_HOT)
        yield storage


async def read(
    engines: Storage, where: ReadFrom, name: StreamName = CLICKS, **most: int
) -> ShardRead:
    return await engines.streams.read_shard(name, 0, where, **most)


async def read_on(engines: Storage, offset: int, records_max: int) -> list[ShardRead]:
    """The reads of one who goes on until the tip."""
    reads: list[ShardRead] = []
    while not reads or reads[-1].next_offset < reads[-1].tip:
        reads.append(await read(engines, ReadFrom(offset=offset), records_max=records_max))
        offset = reads[-1].next_offset
    return reads


def told(reads: list[ShardRead]) -> list[LogRecord]:
    return [record for one in reads for record in one.records]


def offsets(read: ShardRead) -> list[int]:
    assert [one.record.data for one in read.records] == [b"%d" % one.offset for one in read.records]
    return [one.offset for one in read.records]


# Across the seam


@pytest.mark.parametrize("records_max", [1, 7, 10_000])
async def test_who_reads_on_meets_every_record_once_in_whichever_tier_it_is(
    engines, settings, clock, records_max
):
    await engines.catalog.put_stream(CLICKS, ALL_HOT)
    await append(engines, 10, 5)
    clock.advance(ms=HOUR)
    await append(engines, 20)
    before = told(await read_on(engines, 0, records_max))
    await engines.catalog.put_stream(CLICKS, NOTHING_HOT)
    await to_archive(engines, settings)
    await append(engines, 8)
    reads = await read_on(engines, 0, records_max)

    assert told(reads)[:35] == before
    assert [offset for one in reads for offset in offsets(one)] == list(range(43))
    assert all(one.gap is None and (one.start, one.tip) == (0, 43) for one in reads)
    tiers = [one.tier for one in reads]
    assert tiers == sorted(tiers, key=[Tier.ARCHIVE, Tier.HOT].index)
    assert {*tiers} == {Tier.ARCHIVE, Tier.HOT}
    assert {one.tier for one in reads if one.records[0].offset >= 35} == {Tier.HOT}


async def test_what_is_in_both_tiers_is_read_hot(engines, settings):
    await engines.catalog.put_stream(CLICKS, ALL_HOT)
    await append(engines, 10)

    await to_archive(engines, settings)

    assert (await read(engines, ReadFrom(offset=0))).tier is Tier.HOT


async def test_a_read_stops_by_records_and_bytes(engines, settings):
    await append(engines, 100)
    await to_archive(engines, settings)

    few = await read(engines, ReadFrom(offset=40), records_max=7)
    small = await read(engines, ReadFrom(offset=40), bytes_max=9)
    least = await read(engines, ReadFrom(offset=40), bytes_max=1)

    assert offsets(few) == list(range(40, 47))
    assert offsets(small) == list(range(40, 44))
    assert offsets(least) == [40]
    assert (few.next_offset, few.tip, few.tier) == (47, 100, Tier.ARCHIVE)


async def test_records_keep_their_key_headers_and_times(engines, settings, clock):
    headers = (("colour", "String", b"red"), ("n", "", b"\xff"))
    records = [Record(b"\x00\xff", "clé", headers, 5), Record(b""), Record(b"x", "k", (), None)]
    await engines.streams.append_to_shard(CLICKS, 0, records)
    arrival_ms = clock.now_ms()
    await to_archive(engines, settings)

    found = await read(engines, ReadFrom(offset=0))

    assert found.records == [LogRecord(nth, arrival_ms, one) for nth, one in enumerate(records)]


async def test_how_far_a_reader_of_the_archive_is_behind(engines, settings, clock):
    await append(engines, 10)
    clock.advance(ms=5_000)
    await to_archive(engines, settings)

    part = await read(engines, ReadFrom(offset=0), records_max=4)
    rest = await read(engines, ReadFrom(offset=4))

    assert (part.behind_ms, rest.behind_ms) == (5_000, 0)


# Where reads start


async def test_the_oldest_record_is_the_archives(engines, settings):
    await append(engines, 10)
    await to_archive(engines, settings)
    await append(engines, 5)

    found = await read(engines, ReadFrom(time_ms=0), records_max=3)

    assert offsets(found) == [0, 1, 2]


async def test_a_read_from_a_time_finds_the_first_record_then_in_either_tier(
    engines, settings, clock
):
    begun = clock.now_ms()
    for _ in range(4):
        await append(engines, 5, 5)
        clock.advance(ms=HOUR // 2)
    await to_archive(engines, settings)
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
async def test_the_last_records_reach_into_the_archive(engines, settings, tail, first):
    await append(engines, 10)
    await to_archive(engines, settings)
    await append(engines, 5)

    found = await read(engines, ReadFrom(tail=tail))

    assert offsets(found)[0] == first
    assert found.tier is (Tier.HOT if first >= 10 else Tier.ARCHIVE)


async def test_a_reader_at_the_tip_waits_for_the_next_record_as_ever(engines, settings):
    await append(engines, 10)
    await to_archive(engines, settings)

    waiting = asyncio.create_task(read(engines, ReadFrom(offset=10), wait_ms=10_000))
    await asyncio.sleep(0)
    await append(engines, 1)

    assert offsets(await waiting) == [10]


async def test_all_shards_of_a_stream_are_read_from_the_archive_on(engines, settings):
    await engines.catalog.put_stream(StreamName("wide"), StreamSpec(shards=3, hot_retention_ms=0))
    wide = StreamName("wide")
    records = [Record(b"%d" % nth, f"k{nth}") for nth in range(60)]
    await engines.streams.append(wide, records[:40])
    await to_archive(engines, settings, wide)
    await engines.streams.append(wide, records[40:])

    found: list[Record] = []
    positions: dict[int, int] = {}
    for _ in range(40):
        part = await engines.streams.read(wide, positions, records_max=9)
        found += [one.record for shard in part.shards for one in shard.records]
        positions = part.positions

    assert sorted(found, key=lambda one: int(one.data)) == records


async def test_children_are_read_after_parents_that_lie_in_the_archive(engines, settings, clock):
    await append(engines, 10)
    clock.advance(ms=2_000)
    await engines.streams.split(CLICKS, 0, RING_SIZE // 2)
    await engines.streams.append(CLICKS, [Record(b"child", f"k{nth}") for nth in range(9)])
    await to_archive(engines, settings)

    first = await engines.streams.read(CLICKS, {})
    rest = await engines.streams.read(CLICKS, first.positions)

    [parent] = first.shards
    assert (offsets(parent), parent.ended) == (list(range(10)), True)
    assert first.tier is rest.tier is Tier.ARCHIVE
    assert sum(len(one.records) for one in rest.shards) == 9


# What cannot be read


async def test_what_lies_below_both_tiers_has_expired(engines, settings):
    await append(engines, 10, 10)
    await to_archive(engines, settings)
    await append(engines, 5)

    start = await engines.streams.truncate(CLICKS, 0, 13)

    assert start == 13
    with pytest.raises(OffsetExpired) as expired:
        await read(engines, ReadFrom(offset=12))
    assert expired.value.facts == {"earliest_offset": 13, "next_offset": 25}
    assert offsets(await read(engines, ReadFrom(offset=13)))[0] == 13
    assert offsets(await read(engines, ReadFrom(time_ms=0)))[0] == 13
    assert offsets(await read(engines, ReadFrom(tail=1_000)))[0] == 13
    [state] = await engines.streams.shards(CLICKS)
    assert (state.start, state.next) == (13, 25)


async def test_a_truncation_is_seen_by_other_processes_within_a_second(engines, settings, clock):
    await append(engines, 10)
    await to_archive(engines, settings)
    async with open_storage(settings, clock=clock) as other:
        assert offsets(await read(other, ReadFrom(offset=2)))[0] == 2
        await engines.streams.truncate(CLICKS, 0, 5)

        clock.advance(ms=limits.ARCHIVE_EXTENT_MS)

        with pytest.raises(OffsetExpired):
            await read(other, ReadFrom(offset=2))


async def test_a_truncation_beyond_the_end_changes_nothing(engines, settings):
    await append(engines, 10)
    await to_archive(engines, settings)

    with pytest.raises(OffsetOutOfRange):
        await engines.streams.truncate(CLICKS, 0, 11)

    assert offsets(await read(engines, ReadFrom(offset=0)))[0] == 0


async def test_what_was_truncated_before_it_was_archived_never_comes_there(engines, settings):
    await append(engines, 10)
    await engines.streams.truncate(CLICKS, 0, 4)

    await to_archive(engines, settings)

    with pytest.raises(OffsetExpired) as expired:
        await read(engines, ReadFrom(offset=0))
    assert expired.value.facts["earliest_offset"] == 4


async def test_all_truncated_is_nothing_left(engines, settings):
    await append(engines, 10)
    await to_archive(engines, settings)

    assert await engines.streams.truncate(CLICKS, 0, 10) == 10

    found = await read(engines, ReadFrom(time_ms=0))
    assert (found.records, found.gap, found.start, found.tip) == ([], None, 10, 10)


async def test_what_was_archived_survives_the_hot_store(engines, settings, redis_url):
    await engines.catalog.put_stream(CLICKS, ALL_HOT)
    await append(engines, 10)
    await archive(engines, settings, CLICKS)
    await append(engines, 3)

    await lose_the_hot_store(engines, redis_url)

    [one] = await engines.streams.append_to_shard(CLICKS, 0, [Record(b"next")])
    first, second, third = await read_on(engines, 0, 100)
    assert offsets(first) == list(range(10))
    assert second.gap == Gap(10, one.offset, "hole")
    assert [record.record.data for record in third.records] == [b"next"]
    assert [read.tier for read in (first, second, third)] == [Tier.ARCHIVE, Tier.ARCHIVE, Tier.HOT]


async def test_the_lag_behind_a_lost_hot_store_counts_what_the_archive_has(
    engines, settings, redis_url
):
    await engines.catalog.put_stream(CLICKS, ALL_HOT)
    await append(engines, 10)
    await archive(engines, settings, CLICKS)
    await engines.groups.put(READERS, GroupSpec(stream=CLICKS.name))
    await append(engines, 3)

    await lose_the_hot_store(engines, redis_url)
    await engines.streams.append_to_shard(CLICKS, 0, [Record(b"next")])

    [lag] = await engines.groups.lag(READERS)
    assert (lag.records, lag.expired) == (11, 0)


async def test_an_older_copy_of_the_hot_store_is_completed_by_the_archive(
    engines, settings, redis_url
):
    await engines.catalog.put_stream(CLICKS, ALL_HOT)
    await append(engines, 4)
    stream = await engines.catalog.stream(CLICKS)
    keys = every_key("default", stream.shards[0].log_id)
    with redis.Redis.from_url(redis_url) as client:
        copy = {key: client.dump(key) for key in keys if client.exists(key)}
        await append(engines, 6)
        await archive(engines, settings, CLICKS)
        await lose_the_hot_store(engines, redis_url)
        for key, dump in copy.items():
            client.restore(key, 0, dump)

    at_its_end = await read(engines, ReadFrom(offset=4))
    beyond = await read(engines, ReadFrom(offset=7))
    [one] = await engines.streams.append_to_shard(CLICKS, 0, [Record(b"next")])
    reads = await read_on(engines, 0, 100)

    assert (offsets(at_its_end), at_its_end.next_offset) == ([], 4)  # told once there is more
    assert offsets(beyond) == [7, 8, 9]
    assert [offset for read in reads[:2] for offset in offsets(read)] == list(range(10))
    assert reads[2].gap == Gap(10, one.offset, "hole")


# Files


def only_file(settings: StorageSettings) -> Path:
    [path] = Path((settings.archive_url or "").removeprefix("file://")).rglob("*.parquet")
    return path


async def test_a_damaged_file_is_never_passed_over(engines, settings):
    await append(engines, 10)
    await to_archive(engines, settings)
    await append(engines, 5)
    file = only_file(settings)
    sound = file.read_bytes()
    file.write_bytes(sound[:40] + bytes([sound[40] ^ 1]) + sound[41:])

    for where in (ReadFrom(offset=0), ReadFrom(offset=9), ReadFrom(time_ms=0), ReadFrom(tail=8)):
        with pytest.raises(ArchiveDamaged):
            await read(engines, where)
    with pytest.raises(ArchiveDamaged):
        await engines.streams.read(CLICKS, {})
    assert offsets(await read(engines, ReadFrom(offset=10))) == [10, 11, 12, 13, 14]

    file.write_bytes(sound)
    assert offsets(await read(engines, ReadFrom(offset=9)))[0] == 9


async def test_a_file_that_is_gone_is_damage_and_no_gap(engines, settings):
    await append(engines, 10)
    await to_archive(engines, settings)
    only_file(settings).unlink()

    with pytest.raises(ArchiveDamaged, match="missing"):
        await read(engines, ReadFrom(offset=0))


async def test_many_readers_of_a_row_group_load_it_once(engines, settings, monkeypatch):
    await append(engines, 500)
    await to_archive(engines, settings)
    asked = []
    fetch = LocalRoot.read

    def note(root, path, start, size):
        asked.append(start)
        return fetch(root, path, start, size)

    monkeypatch.setattr(LocalRoot, "read", note)

    reads = await asyncio.gather(
        *(read(engines, ReadFrom(offset=first), records_max=10) for first in range(0, 500, 10))
    )

    assert [offset for one in reads for offset in offsets(one)] == list(range(500))
    assert len(asked) == 2  # the footer, and the row group


async def test_an_archive_in_an_object_store_is_read_as_well(
    redis_url, database_url, clock, s3_url
):
    settings = StorageSettings(redis_url=redis_url, database_url=database_url, archive_url=s3_url)
    async with open_storage(settings, clock=clock) as engines:
        await engines.catalog.put_stream(CLICKS, NOTHING_HOT)
        await append(engines, 10)
        await to_archive(engines, settings)
        await append(engines, 5)

        reads = await read_on(engines, 0, 6)

        assert [offset for one in reads for offset in offsets(one)] == list(range(15))
        [file] = open_root(s3_url).files("")
        open_root(s3_url).delete(file.path)
    async with open_storage(settings, clock=clock) as engines:
        with pytest.raises(ArchiveDamaged):
            await read(engines, ReadFrom(offset=0))


# Groups, views, closed shards


async def fetch(engines: Storage, records_max: int) -> ShardRead:
    fetched = await engines.groups.fetch(READERS, "alice", records_max=records_max)
    generation = fetched.membership.generation
    read_up_to = [Commit(shard, at, "alice", generation) for shard, at in fetched.positions.items()]
    if read_up_to:
        await engines.groups.commit(READERS, read_up_to)
    [found] = fetched.reads
    return found


async def test_a_group_begins_with_the_archives_first_record_and_reads_across_the_seam(
    engines, settings
):
    await append(engines, 10)
    await to_archive(engines, settings)
    await append(engines, 5)
    await engines.groups.put(READERS, GroupSpec(stream=CLICKS.name))

    reads = [await fetch(engines, 4) for _ in range(5)]

    assert [offset for one in reads for offset in offsets(one)] == list(range(15))
    assert [one.tier for one in reads[:3]] == [Tier.ARCHIVE] * 3
    assert reads[-1].tier is Tier.HOT


async def test_a_groups_lag_and_its_time_to_loss_count_what_lies_in_the_archive(
    engines, settings, clock
):
    spec = StreamSpec(hot_retention_ms=0, retention_ms=100 * HOUR)
    await engines.catalog.put_stream(CLICKS, spec)
    await engines.groups.put(READERS, GroupSpec(stream=CLICKS.name))
    await append(engines, 10)
    clock.advance(ms=HOUR)
    await to_archive(engines, settings)
    await append(engines, 5)

    [lag] = await engines.groups.lag(READERS)

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
async def test_a_group_is_reset_into_the_archive(engines, settings, clock, spec, offset):
    await engines.groups.put(READERS, GroupSpec(stream=CLICKS.name))
    await append(engines, 10)
    clock.advance(ms=HOUR)
    await append(engines, 10)
    await to_archive(engines, settings)
    await fetch(engines, 1_000)

    [reset] = await engines.groups.reset(READERS, spec, dry_run=False)

    assert (reset.before, reset.after, reset.expired) == (20, offset, 0)
    found = await fetch(engines, 1)
    assert [one.offset for one in found.records] == [offset][: 20 - offset]


async def test_a_queues_view_is_read_across_the_seam(engines, settings):
    orders, view = QueueName("orders"), StreamName("orders")
    await engines.catalog.put_queue(orders, QueueSpec(stream_view=True, archive=True))
    await engines.queues.send(orders, [NewMessage(b"%d" % nth) for nth in range(10)])
    before = await read(engines, ReadFrom(offset=0), view)
    await archive(engines, settings, view)
    stream = await engines.catalog.stream(view)
    at = LogAddress("default", stream.stream_id, is_view=True)
    await engines.streams._hot.trim(at, 0, None, None, 1_000, "", archived=10)
    await engines.queues.send(orders, [NewMessage(b"10")])

    reads = [await read(engines, ReadFrom(offset=offset), view) for offset in (0, 10)]

    assert reads[0].records == before.records
    assert [one.tier for one in reads] == [Tier.ARCHIVE, Tier.HOT]


async def test_a_closed_shard_stays_while_the_archive_has_records_of_it(engines, settings, clock):
    spec = StreamSpec(hot_retention_ms=0, retention_ms=100 * limits.DAY_MS)
    await engines.catalog.put_stream(CLICKS, spec)
    await append(engines, 10)
    clock.advance(ms=2_000)
    await engines.streams.split(CLICKS, 0, RING_SIZE // 2)
    await to_archive(engines, settings)
    clock.advance(ms=10 * limits.DAY_MS)

    assert await engines.streams.expire_shards(CLICKS) == 0
    assert offsets(await read(engines, ReadFrom(offset=0))) == list(range(10))

    await engines.streams.truncate(CLICKS, 0, 10)
    assert await engines.streams.expire_shards(CLICKS) == 1


async def test_a_stream_that_is_archived_no_longer_keeps_what_was(engines, settings):
    await append(engines, 10)
    await to_archive(engines, settings)
    await engines.catalog.put_stream(CLICKS, StreamSpec(archive=False))

    assert offsets(await read(engines, ReadFrom(time_ms=0))) == list(range(10))


async def test_joined_files_are_read_as_their_parts_were(engines, settings, clock):
    for _ in range(5):
        await append(engines, 4)
        await to_archive(engines, settings)
    first = await read(engines, ReadFrom(offset=0), records_max=6)
    clock.advance(ms=2 * HOUR)

    root, key = open_root(settings.archive_url), (await engines.catalog.stream(CLICKS)).stream_id
    [run] = await engines.archiving.to_compact("default")
    await engines.archiving.plan_compaction()
    claimed = await engines.jobs.claim("test", [JobKind.COMPACT])
    joined = join(root, "default", run)
    await engines.archiving.commit_compacted(claimed.claim, [(run, joined)], {})

    rest = await read(engines, ReadFrom(offset=first.next_offset))
    async with open_storage(settings, clock=clock) as other:
        anew = await read(other, ReadFrom(offset=0))
    assert joined.stream_id == key
    assert offsets(first) + offsets(rest) == offsets(anew) == list(range(20))


# Without Postgres


async def test_hot_reads_go_on_while_postgres_is_away(engines, settings, clock, monkeypatch):
    await append(engines, 10)
    await to_archive(engines, settings)
    await append(engines, 5)
    known = await read(engines, ReadFrom(offset=12))
    async with open_storage(settings, clock=clock) as other:
        await other.catalog.stream(CLICKS)

        async def away(*_):
            raise StorageUnavailable("away")

        for name in ("extents", "files_from", "file_since"):
            monkeypatch.setattr(ManifestRows, name, away)
        clock.advance(ms=10 * limits.ARCHIVE_EXTENT_MS)

        unknown = await read(other, ReadFrom(offset=12))
        with pytest.raises(StorageUnavailable):
            await read(other, ReadFrom(offset=3))

    assert (known.start, offsets(known)) == (0, [12, 13, 14])
    assert (unknown.start, offsets(unknown)) == (10, [12, 13, 14])
    assert (await read(engines, ReadFrom(offset=12))).start == 0


async def test_a_hot_read_asks_postgres_for_nothing(engines, settings, monkeypatch):
    await append(engines, 10)
    reads = []

    async def note(self, stream_id):
        reads.append(stream_id)
        return {}

    monkeypatch.setattr(ManifestRows, "extents", note)

    await read(engines, ReadFrom(offset=0))
    await read(engines, ReadFrom(tail=100))
    await read(engines, ReadFrom(time_ms=0))

    assert reads == []
