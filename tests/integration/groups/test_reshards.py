"""Groups on streams that are resharded, or that drop what was read."""

import asyncio

import pytest

from consumers.maintenance.tasks.group_offsets import copy_group_offsets
from consumers.maintenance.tasks.groups import rebalance_groups
from consumers.maintenance.tasks.read_records import delete_read_records
from storage.bootstrap import open_storage
from storage.domain.groups.group import (
    Commit,
    GroupKind,
    GroupOffset,
    GroupSpec,
    ResetSpec,
    ResetTo,
)
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, StreamName
from storage.domain.streams.start_at import StartAt
from storage.domain.streams.stream import Gap, GapReason, StreamSpec
from tests.conditions import PATIENCE_S
from tests.integration.groups.group_reads import (
    CLICKS,
    NEVER_AWAY,
    READERS,
    commits,
    data,
    fill,
    shards_of,
)

pytestmark = pytest.mark.one_store

HALF = 2**125  # in the middle of the first of four shards
INTEREST = StreamName("interest")


async def test_children_are_read_after_parent_is_fully_committed(storage, groups):
    await fill(storage)
    await groups.fetcher.fetch(READERS, "a")
    await storage.streams.resharder.split(CLICKS, 0, HALF)
    await storage.streams.append_to_shard(CLICKS, 4, [Record(b"child")])

    before = await groups.fetcher.fetch(READERS, "a")
    await groups.commit(READERS, commits(before))
    after = await groups.fetcher.fetch(READERS, "a")

    assert len(data(before)) == 12
    assert data(after) == [b"child"]
    assert shards_of(after.membership) == [1, 2, 3, 4, 5]


async def test_next_fetch_finishes_parent_committed_before_closing(storage, groups):
    await fill(storage)
    await groups.commit(READERS, commits(await groups.fetcher.fetch(READERS, "a")))
    await storage.streams.resharder.split(CLICKS, 0, HALF)
    await storage.streams.append_to_shard(CLICKS, 5, [Record(b"child")])

    assert data(await groups.fetcher.fetch(READERS, "a")) == [b"child"]


async def test_maintenance_finishes_parent_committed_before_closing(storage, groups):
    await fill(storage)
    await groups.commit(READERS, commits(await groups.fetcher.fetch(READERS, "a")))
    await storage.streams.resharder.split(CLICKS, 0, HALF)

    await copy_group_offsets.work(storage)
    await rebalance_groups.work(storage)

    assert shards_of(await groups.heartbeat(READERS, "a")) == [1, 2, 3, 4, 5]


async def test_reading_ahead_to_end_of_shard_commits_nothing(storage, groups):
    """A fetch ahead of the committed offsets meets the end; the group has not read it."""
    await fill(storage)
    first = await groups.fetcher.fetch(READERS, "a")
    await storage.streams.resharder.split(CLICKS, 0, HALF)

    ahead = await groups.fetcher.fetch(
        READERS, "a", positions=first.positions, generation=first.membership.generation
    )
    again = await groups.fetcher.fetch(READERS, "a")

    assert data(ahead) == []
    assert data(again) == data(first)
    assert shards_of(again.membership) == [0, 1, 2, 3]


async def test_process_with_stale_definition_finishes_parent(storage, settings, clock):
    """The cached definition says that the shard is open; the read says that it has ended."""
    await fill(storage)
    async with open_storage(settings, clock=clock, limits=NEVER_AWAY) as other:
        read = await other.groups.fetcher.fetch(READERS, "a")
        await other.groups.commit(READERS, commits(read))
        await storage.streams.resharder.split(CLICKS, 0, HALF)

        async with asyncio.timeout(PATIENCE_S):
            after = await other.groups.fetcher.fetch(READERS, "a", wait_ms=100)

        assert shards_of(after.membership) == [1, 2, 3, 4, 5]


async def test_waiting_fetch_continues_with_children(storage, groups):
    await groups.fetcher.fetch(READERS, "a")
    waiting = asyncio.create_task(groups.fetcher.fetch(READERS, "a", wait_ms=15_000))
    await asyncio.sleep(0.05)

    await storage.streams.resharder.split(CLICKS, 0, HALF)
    await asyncio.sleep(0.05)
    await storage.streams.append_to_shard(CLICKS, 5, [Record(b"child")])

    assert data(await asyncio.wait_for(waiting, PATIENCE_S)) == [b"child"]


async def test_merged_shard_waits_for_both_parents(storage, groups):
    await fill(storage)
    await storage.streams.resharder.merge(CLICKS, 0, 1)
    await storage.streams.append_to_shard(CLICKS, 4, [Record(b"child")])
    read = await groups.fetcher.fetch(READERS, "a")
    generation = read.membership.generation

    await groups.commit(READERS, [Commit(0, 3, "a", generation)])
    membership = await groups.heartbeat(READERS, "a")
    await groups.commit(READERS, [Commit(1, 3, "a", generation)])
    both = await groups.heartbeat(READERS, "a")

    assert len(data(read)) == 12
    assert shards_of(membership) == [1, 2, 3]
    assert shards_of(both) == [2, 3, 4]


async def test_reset_before_split_reads_parent_and_children_again(storage, groups):
    await fill(storage)
    await storage.streams.resharder.split(CLICKS, 0, HALF)
    await storage.streams.append_to_shard(CLICKS, 4, [Record(b"child")])
    await groups.commit(READERS, commits(await groups.fetcher.fetch(READERS, "a")))
    await groups.commit(READERS, commits(await groups.fetcher.fetch(READERS, "a")))

    await groups.positions.reset(READERS, ResetSpec(to=ResetTo.EARLIEST))
    parents = await groups.fetcher.fetch(READERS, "a")
    await groups.commit(READERS, commits(parents))
    children = await groups.fetcher.fetch(READERS, "a")

    assert shards_of(parents.membership) == [0, 1, 2, 3]
    assert (len(data(parents)), data(children)) == (12, [b"child"])


async def test_group_at_latest_starts_with_open_shards(storage, groups):
    late = GroupName("late")
    await fill(storage)
    await storage.streams.resharder.split(CLICKS, 0, HALF)
    await groups.put(late, GroupSpec(stream="clicks", start=StartAt.LATEST))

    assert shards_of(await groups.join(late)) == [1, 2, 3, 4, 5]


async def test_simple_group_follows_split(storage, groups):
    simple = GroupName("simple")
    await fill(storage, 1)
    await groups.put(simple, GroupSpec(stream="clicks", kind=GroupKind.SIMPLE))
    await storage.streams.resharder.split(CLICKS, 0, HALF)
    await storage.streams.append_to_shard(CLICKS, 4, [Record(b"child")])

    first = await groups.fetcher.fetch(simple)
    await groups.commit(simple, commits(first))
    second = await groups.fetcher.fetch(simple)
    results = await groups.commit(simple, commits(second))

    assert (len(data(first)), data(second)) == (4, [b"child"])
    assert all(isinstance(result, GroupOffset) for result in results)
    assert data(await groups.fetcher.fetch(simple)) == []


async def test_expired_shard_is_gap_until_children_are_committed(storage, groups, clock):
    await fill(storage, 1)
    await groups.fetcher.fetch(READERS, "a")
    await storage.streams.resharder.split(CLICKS, 0, HALF)
    clock.advance(ms=8 * 86_400_000)
    await storage.streams.trim(CLICKS, 1_000)
    await storage.streams.expire_shards(CLICKS)

    fetched_records = await groups.fetcher.fetch(READERS, "a", wait_ms=1_000)
    again = await groups.fetcher.fetch(READERS, "a", wait_ms=1_000)
    results = await groups.commit(READERS, commits(again))
    after = await groups.fetcher.fetch(READERS, "a")

    assert shards_of(fetched_records.membership) == [1, 2, 3, 4, 5]
    assert (0, Gap(0, 0, GapReason.EXPIRED)) in fetched_records.gaps
    assert again == fetched_records
    assert all(isinstance(one, GroupOffset) for one in results)
    assert after.gaps == []
    assert [one.shard for one in await groups.lags.by_shard(READERS)] == [1, 2, 3, 4, 5]


async def test_records_committed_by_all_groups_are_dropped(storage, groups):
    spec = StreamSpec(shards=1, drop_when_read=True)
    await storage.catalog.put_stream(INTEREST, spec)
    for number in range(4):  # one entry each
        await storage.streams.append(INTEREST, [Record(b"%d" % number, "k")])
    first, second = GroupName("first"), GroupName("second")
    for group in (first, second):
        await groups.put(group, GroupSpec(stream=INTEREST.name, kind=GroupKind.SIMPLE))

    async def oldest_after(group: GroupName, offset: int) -> int:
        [done] = await groups.commit(group, [Commit(0, offset)])
        assert isinstance(done, GroupOffset)
        await copy_group_offsets.work(storage)
        await delete_read_records.work(storage)
        [state] = await storage.record_reader.shards(INTEREST)
        start: int = state.start
        return start

    assert await oldest_after(first, 3) == 0  # the second group has committed nothing
    assert await oldest_after(second, 1) == 1
    assert await oldest_after(second, 4) == 3


async def test_nothing_is_dropped_as_read_without_group(storage):
    await storage.catalog.put_stream(INTEREST, StreamSpec(shards=1, drop_when_read=True))
    await storage.streams.append(INTEREST, [Record(b"1", "k")])

    await delete_read_records.work(storage)

    [state] = await storage.record_reader.shards(INTEREST)
    assert (state.start, state.next) == (0, 1)
