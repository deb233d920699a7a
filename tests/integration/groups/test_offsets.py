"""Groups without members, resets, bookmarks and lag."""

import pytest
import redis

from storage.bootstrap import open_storage
from storage.domain.errors import (
    BookmarkNotFound,
    OffsetOutOfRange,
    ShardNotFound,
    StaleGeneration,
    ValidationFailed,
)
from storage.domain.groups.group import (
    Commit,
    GroupKind,
    GroupOffset,
    GroupSpec,
    ResetSpec,
    ResetTo,
)
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName
from storage.redis.keys import STORE_KEY
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


async def test_simple_group_keeps_offsets_without_members(storage, groups):
    simple = GroupName("simple")
    await fill(storage)
    await groups.put(simple, GroupSpec(stream="clicks", kind=GroupKind.SIMPLE))

    first = await groups.fetcher.fetch(simple)
    committed = await groups.commit(simple, [Commit(0, 3), Commit(1, 1)])
    rest = await groups.fetcher.fetch(simple)

    assert len(data(first)) == 12
    assert committed == [GroupOffset(0, 3), GroupOffset(1, 1)]
    assert len(data(rest)) == 8
    with pytest.raises(ValidationFailed):
        await groups.join(simple)
    with pytest.raises(ValidationFailed):
        await groups.fetcher.fetch(READERS)


async def test_reset_fences_earlier_reads_of_simple_group(storage, groups):
    simple = GroupName("simple")
    await fill(storage)
    await groups.put(simple, GroupSpec(stream="clicks", kind=GroupKind.SIMPLE))
    read = await groups.fetcher.fetch(simple)
    await groups.positions.reset(simple, ResetSpec(to=ResetTo.LATEST))

    results = await groups.commit(simple, commits(read))

    assert all(isinstance(result, StaleGeneration) for result in results)


async def test_dry_run_shows_changes_of_reset(storage, groups):
    await fill(storage)
    await groups.commit(READERS, commits(await groups.fetcher.fetch(READERS, "a", records_max=4)))

    shown = await groups.positions.reset(
        READERS, ResetSpec(to=ResetTo.LATEST, shards=(1, 2)), dry_run=True
    )
    after = await groups.fetcher.fetch(READERS, "a")

    assert [(one.shard, one.before, one.after) for one in shown] == [(1, 1, 3), (2, 1, 3)]
    assert len(data(after)) == 8


async def test_reset_fences_reads_of_active_members(storage, groups):
    """G2 and G3: only the reset moves the group back, and earlier reads cannot undo it."""
    await fill(storage)
    read = await groups.fetcher.fetch(READERS, "a")
    await groups.commit(READERS, commits(read))

    shown = await groups.positions.reset(READERS, ResetSpec(to=ResetTo.EARLIEST))
    stale = await groups.commit(READERS, commits(read))
    again = await groups.fetcher.fetch(READERS, "a")

    assert [(one.before, one.after) for one in shown] == [(3, 0)] * 4
    assert all(isinstance(one, StaleGeneration) for one in stale)
    assert data(again) == data(read)
    assert shards_of(again.membership) == [0, 1, 2, 3]


async def test_reset_accepts_time_or_offsets(storage, groups, clock):
    await fill(storage)
    clock.advance(ms=1_000)
    at_ms = clock.now_ms()
    await fill(storage, 1)

    by_time = await groups.positions.reset(READERS, ResetSpec(to=ResetTo.TIME, time_ms=at_ms))
    by_offset = await groups.positions.reset(READERS, ResetSpec(to=ResetTo.OFFSETS, offsets={2: 1}))

    assert [one.after for one in by_time] == [3, 3, 3, 3]
    assert [(one.shard, one.before, one.after) for one in by_offset] == [(2, 3, 1)]
    with pytest.raises(OffsetOutOfRange):
        await groups.positions.reset(READERS, ResetSpec(to=ResetTo.OFFSETS, offsets={2: 5}))
    with pytest.raises(ShardNotFound):
        await groups.positions.reset(READERS, ResetSpec(to=ResetTo.OFFSETS, offsets={7: 0}))
    with pytest.raises(ValidationFailed):
        await groups.positions.reset(READERS, ResetSpec(to=ResetTo.OFFSETS))


async def test_group_can_be_reset_to_bookmark(storage, groups):
    await fill(storage)
    await groups.commit(READERS, commits(await groups.fetcher.fetch(READERS, "a", records_max=4)))
    saved = await groups.positions.save_bookmark(READERS, "before-deploy")
    await groups.commit(READERS, commits(await groups.fetcher.fetch(READERS, "a")))

    await groups.positions.reset(READERS, ResetSpec(to=ResetTo.BOOKMARK, bookmark="before-deploy"))
    again = await groups.fetcher.fetch(READERS, "a")

    assert saved.positions == dict.fromkeys(range(4), 1)
    assert len(data(again)) == 8
    assert await groups.positions.bookmarks(READERS) == [saved]


async def test_bookmarks_are_replaced_and_deleted(storage, groups):
    await fill(storage)
    await groups.positions.save_bookmark(READERS, "here", {0: 1})
    replaced = await groups.positions.save_bookmark(READERS, "here", {1: 2})

    assert [bookmark.positions for bookmark in await groups.positions.bookmarks(READERS)] == [
        replaced.positions
    ]
    with pytest.raises(OffsetOutOfRange):
        await groups.positions.save_bookmark(READERS, "there", {0: 9})
    await groups.positions.delete_bookmark(READERS, "here")
    with pytest.raises(BookmarkNotFound):
        await groups.positions.delete_bookmark(READERS, "here")
    with pytest.raises(BookmarkNotFound):
        await groups.positions.reset(READERS, ResetSpec(to=ResetTo.BOOKMARK, bookmark="here"))


async def test_lag_is_in_records_and_in_time(storage, groups, clock):
    await fill(storage)
    clock.advance(ms=5_000)
    await groups.commit(READERS, commits(await groups.fetcher.fetch(READERS, "a", records_max=4)))
    await groups.commit(
        READERS, [Commit(3, 3, "a", (await groups.heartbeat(READERS, "a")).generation)]
    )

    lags = await groups.lags.by_shard(READERS)

    assert [lag.records for lag in lags] == [2, 2, 2, 0]
    assert [lag.lag_ms for lag in lags] == [5_000, 5_000, 5_000, 0]
    assert lags[0].loss_in_ms == 7 * 86_400_000 - 5_000
    assert lags[3].loss_in_ms is None
    assert {lag.owner for lag in lags} == {"a"}


async def test_holes_are_not_lag(storage, groups, clock):
    await fill(storage)
    epoch = storage.streams._provisioner._epoch
    stream = await storage.catalog.stream(CLICKS)
    with redis.Redis.from_url(storage.health._settings.redis_url) as client:
        client.hdel(STORE_KEY, "epoch")
    epoch._run_id = ""
    await epoch.check()
    await storage.streams.append_to_shard(CLICKS, 0, [Record(b"after the hole")])

    [first, *_] = await groups.lags.by_shard(READERS)

    assert stream.shards[0].index == first.shard
    assert first.tip > 10_000
    assert first.records == 4


async def test_members_and_commits_work_across_processes(storage, settings, clock):
    await fill(storage)
    async with open_storage(settings, clock=clock, limits=NEVER_AWAY) as other:
        await storage.groups.fetcher.fetch(READERS, "a")
        await other.groups.fetcher.fetch(READERS, "b")
        a = await storage.groups.fetcher.fetch(READERS, "a")
        b = await other.groups.fetcher.fetch(READERS, "b")
        crossed = await other.groups.commit(READERS, commits(a))
        done = await storage.groups.commit(READERS, commits(b))

        assert not set(shards_of(a.membership)) & set(shards_of(b.membership))
        assert all(isinstance(one, GroupOffset) for one in [*crossed, *done])
        assert data(await other.groups.fetcher.fetch(READERS, "a")) == []
