"""The verbs of a consumer group, one rule at a time; `tests/stateful` mixes them."""

import asyncio
from collections import Counter

import pytest
import redis

from consumers import sweeper
from consumers.sweeper import settle_groups
from storage.domain.batches import Record
from storage.domain.errors import (
    BookmarkNotFound,
    GroupNotFound,
    MemberUnknown,
    OffsetOutOfRange,
    PreconditionFailed,
    ShardNotFound,
    StaleGeneration,
    StreamNotFound,
    ValidationFailed,
)
from storage.domain.groups import (
    Commit,
    Committed,
    Fetched,
    GroupKind,
    GroupSpec,
    ResetSpec,
    ResetTo,
    StartAt,
)
from storage.domain.limits import Limits
from storage.domain.names import GroupName, QueueName, StreamName
from storage.domain.queues import QueueSpec
from storage.domain.streams import Gap, StreamSpec
from storage.lifespan import open_storage
from storage.redis.keys import STORE_KEY
from storage.settings import StorageSettings

pytestmark = pytest.mark.one_store

CLICKS = StreamName("clicks")
READERS = GroupName("readers")
INTEREST = StreamName("interest")
SESSION_MS = 30_000
NEVER_AWAY = Limits(outage_ms=10**15)  # tests let time pass in leaps, which is no outage


@pytest.fixture
def settings(redis_url, database_url):
    return StorageSettings(redis_url=redis_url, database_url=database_url)


@pytest.fixture
async def storage(settings, clock):
    async with open_storage(settings, clock=clock, limits=NEVER_AWAY) as storage:
        await storage.catalog.put_stream(CLICKS, StreamSpec(shards=4))
        await storage.groups.put(READERS, GroupSpec(stream="clicks"))
        yield storage


@pytest.fixture
def groups(storage):
    return storage.groups


async def fill(storage, count: int = 3) -> None:
    """So many records in each shard."""
    for shard in range(4):
        records = [Record(b"%d.%d" % (shard, number)) for number in range(count)]
        await storage.streams.append_to_shard(CLICKS, shard, records)


def data(fetched: Fetched) -> list[bytes]:
    return [one.record.data for read in fetched.reads for one in read.records]


def commits(fetched: Fetched) -> list[Commit]:
    member, generation = fetched.membership.member_id, fetched.membership.generation
    return [Commit(shard, at, member, generation) for shard, at in fetched.positions.items()]


def shards_of(membership) -> list[int]:
    return [place.shard for place in membership.assigned]


# Definitions


async def test_a_group_is_made_once_and_its_timeouts_can_change(groups):
    spec = GroupSpec(stream="clicks", session_timeout_ms=10_000)

    changed, created = await groups.put(READERS, spec)
    again, _ = await groups.put(READERS, spec)

    assert not created
    assert (changed.version, again) == (2, changed)
    assert (await groups.get(READERS)).spec.session_timeout_ms == 10_000


async def test_a_group_keeps_its_stream_and_kind(storage, groups):
    await storage.catalog.put_stream(StreamName("other"), StreamSpec())

    for spec in (
        GroupSpec(stream="other"),
        GroupSpec(stream="clicks", kind=GroupKind.SIMPLE),
        GroupSpec(stream="clicks", start=StartAt.LATEST),
    ):
        with pytest.raises(ValidationFailed):
            await groups.put(READERS, spec)


async def test_versions_guard_a_group(groups):
    with pytest.raises(PreconditionFailed):
        await groups.put(READERS, GroupSpec(stream="clicks"), if_match=7)
    with pytest.raises(PreconditionFailed):
        await groups.put(READERS, GroupSpec(stream="clicks"), create_only=True)
    with pytest.raises(PreconditionFailed):
        await groups.delete(READERS, if_match=7)


async def test_a_queues_view_has_no_groups(storage, groups):
    await storage.catalog.put_queue(QueueName("orders"), QueueSpec(stream_view=True))

    with pytest.raises(ValidationFailed):
        await groups.put(GroupName("others"), GroupSpec(stream="orders"))


async def test_a_group_needs_its_stream_and_goes_with_it(storage, groups):
    with pytest.raises(StreamNotFound):
        await groups.put(GroupName("others"), GroupSpec(stream="nowhere"))
    await fill(storage)
    await groups.commit(READERS, commits(await groups.fetch(READERS, "a")))

    await storage.catalog.delete_stream(CLICKS)

    with pytest.raises(GroupNotFound):
        await groups.fetch(READERS, "a")
    with pytest.raises(GroupNotFound):
        await groups.commit(READERS, [Commit(0, 1, "a", 1)])
    assert await groups.list_groups("default") == []


async def test_a_stream_made_anew_is_read_from_its_start_by_a_new_group(storage, groups):
    await fill(storage, 5)
    old = await groups.fetch(READERS, "a")
    await groups.commit(READERS, commits(old))
    await storage.catalog.delete_stream(CLICKS)
    await storage.catalog.put_stream(CLICKS, StreamSpec(shards=4))
    await groups.put(READERS, GroupSpec(stream="clicks"))
    await fill(storage, 1)

    results = await groups.commit(READERS, commits(old))
    new = await groups.fetch(READERS, "a")

    assert all(isinstance(one, OffsetOutOfRange) for one in results)
    assert len(data(new)) == 4


async def test_deleted_groups_are_gone_and_forget_everything(storage, groups):
    await fill(storage)
    await groups.commit(READERS, commits(await groups.fetch(READERS, "a")))

    await groups.delete(READERS)
    with pytest.raises(GroupNotFound):
        await groups.get(READERS)

    await groups.put(READERS, GroupSpec(stream="clicks"))
    assert len(data(await groups.fetch(READERS, "a"))) == 12


async def test_what_a_deleted_group_told_is_stale_for_a_new_one(storage, groups, clock):
    await fill(storage)
    old = await groups.fetch(READERS, "a")
    await groups.delete(READERS)
    clock.advance(ms=1_000)
    await groups.put(READERS, GroupSpec(stream="clicks"))
    await groups.fetch(READERS, "a")

    results = await groups.commit(READERS, commits(old))

    assert all(isinstance(one, StaleGeneration) for one in results)


async def test_groups_are_listed_by_name(groups):
    for name in ("b", "a", "ab"):
        await groups.put(GroupName(name), GroupSpec(stream="clicks"))

    assert [one.name.name for one in await groups.list_groups("default")] == [
        "a",
        "ab",
        "b",
        "readers",
    ]
    assert [
        one.name.name for one in await groups.list_groups("default", prefix="a", after="a")
    ] == ["ab"]


# Where it starts


async def test_a_group_at_the_latest_reads_what_came_after_it_was_made(storage, groups):
    late = GroupName("late")
    await fill(storage)
    await groups.put(late, GroupSpec(stream="clicks", start=StartAt.LATEST))
    await storage.streams.append_to_shard(CLICKS, 2, [Record(b"new")])

    assert data(await groups.fetch(late, "a")) == [b"new"]


async def test_a_group_at_a_time_reads_what_arrived_since(storage, groups, clock):
    since = GroupName("since")
    await fill(storage)
    clock.advance(ms=1_000)
    spec = GroupSpec(stream="clicks", start=StartAt.TIME, start_time_ms=clock.now_ms())
    await groups.put(since, spec)

    assert data(await groups.fetch(since, "a")) == []

    await storage.streams.append_to_shard(CLICKS, 1, [Record(b"new")])
    assert data(await groups.fetch(since, "a")) == [b"new"]


# Members


async def test_a_member_alone_reads_every_shard(groups):
    joined = await groups.join(READERS)

    assert shards_of(joined) == [0, 1, 2, 3]
    assert (await groups.heartbeat(READERS, joined.member_id)).assigned == joined.assigned


async def test_a_second_member_gets_what_the_first_gives_up(groups):
    await groups.join(READERS, member_id="a")
    b = await groups.join(READERS, member_id="b")
    told = await groups.heartbeat(READERS, "a")

    assert shards_of(b) == []
    assert (shards_of(told), [place.shard for place in told.revoked]) == ([0, 1], [2, 3])

    await groups.heartbeat(READERS, "a", owned=[0, 1, 3])
    assert shards_of(await groups.heartbeat(READERS, "b")) == [2]
    await groups.heartbeat(READERS, "a", owned=[0, 1])
    assert shards_of(await groups.heartbeat(READERS, "b")) == [2, 3]


async def test_a_shard_that_is_being_given_up_can_still_be_committed(storage, groups):
    await fill(storage)
    a = await groups.join(READERS, member_id="a")
    await groups.join(READERS, member_id="b")

    before = await groups.commit(READERS, [Commit(3, 2, "a", a.generation)])
    await groups.heartbeat(READERS, "a", owned=[])
    after = await groups.commit(READERS, [Commit(3, 3, "a", a.generation)])

    assert before == [Committed(3, 2)]
    assert isinstance(after[0], StaleGeneration)
    b = await groups.heartbeat(READERS, "b")
    assert {place.shard: place.committed for place in b.assigned}[3] == 2


async def test_a_shard_that_is_not_given_up_moves_in_the_end(groups, clock):
    spec = GroupSpec(stream="clicks", revoke_timeout_ms=5_000)
    await groups.put(READERS, spec)
    await groups.join(READERS, member_id="a")
    await groups.join(READERS, member_id="b")

    clock.advance(ms=5_000)
    await groups.heartbeat(READERS, "a")

    assert shards_of(await groups.heartbeat(READERS, "b")) == [2, 3]


async def test_a_silent_member_is_found_out_by_another_ones_heartbeat(groups, clock):
    await groups.join(READERS, member_id="a")
    await groups.join(READERS, member_id="b")
    clock.advance(ms=SESSION_MS - 1)
    await groups.heartbeat(READERS, "b")
    clock.advance(ms=1)

    told = await groups.heartbeat(READERS, "b")

    assert shards_of(told) == [0, 1, 2, 3]
    with pytest.raises(MemberUnknown):
        await groups.heartbeat(READERS, "a")


async def test_a_sweep_finds_silent_members_too(storage, groups, clock):
    await groups.join(READERS, member_id="a")
    clock.advance(ms=SESSION_MS)

    found = await settle_groups(storage)

    _, members, shards = await groups.describe(READERS)
    assert (found, members) == (1, ())
    assert all(one.lease.owner is None for one in shards.values())
    assert await settle_groups(storage) == 0


async def test_a_member_that_slept_past_its_session_commits_nothing(storage, groups, clock):
    """G2: the shard went to another while it slept."""
    await fill(storage)
    asleep = await groups.fetch(READERS, "a")
    clock.advance(ms=SESSION_MS)
    taken = await groups.fetch(READERS, "b")

    results = await groups.commit(READERS, commits(asleep))

    assert all(isinstance(one, MemberUnknown) for one in results)
    assert data(taken) == data(asleep) == data(await groups.fetch(READERS, "b"))


async def test_a_former_self_commits_nothing(storage, groups, clock):
    """G2: the same name, in a later life."""
    await fill(storage)
    asleep = await groups.fetch(READERS, "a")
    clock.advance(ms=SESSION_MS)
    await settle_groups(storage)
    await groups.fetch(READERS, "a")

    results = await groups.commit(READERS, commits(asleep))

    assert all(isinstance(one, StaleGeneration) for one in results)


async def test_a_generation_that_never_was_commits_nothing(storage, groups):
    await fill(storage)
    generation = (await groups.join(READERS, member_id="a")).generation

    [result] = await groups.commit(READERS, [Commit(0, 1, "a", generation + 1)])

    assert isinstance(result, StaleGeneration)


async def test_a_late_member_whose_shards_nobody_wanted_goes_on(storage, groups, clock):
    await fill(storage)
    late = await groups.fetch(READERS, "a")
    clock.advance(ms=10 * SESSION_MS)

    results = await groups.commit(READERS, commits(late))

    assert all(isinstance(one, Committed) for one in results)
    assert shards_of(await groups.heartbeat(READERS, "a")) == [0, 1, 2, 3]


async def test_joining_again_fences_the_former_self(groups):
    old = await groups.join(READERS, member_id="a")
    await groups.join(READERS, member_id="a")

    [result] = await groups.commit(READERS, [Commit(0, 0, "a", old.generation)])

    assert isinstance(result, StaleGeneration)
    with pytest.raises(StaleGeneration):
        await groups.heartbeat(READERS, "a", generation=old.generation)


async def test_who_leaves_gives_up_everything_at_once(groups):
    await groups.join(READERS, member_id="a")
    await groups.join(READERS, member_id="b")

    await groups.leave(READERS, "a")

    assert shards_of(await groups.heartbeat(READERS, "b")) == [0, 1, 2, 3]
    with pytest.raises(MemberUnknown):
        await groups.leave(READERS, "a")


async def test_a_static_member_comes_back_to_its_shards(groups, clock):
    await groups.join(READERS, instance_id="worker-1")
    await groups.join(READERS, member_id="b")
    await groups.heartbeat(READERS, "worker-1", owned=[0, 1])
    await groups.leave(READERS, "worker-1", for_good=False)
    for _ in range(3):
        clock.advance(ms=SESSION_MS - 1)
        assert shards_of(await groups.heartbeat(READERS, "b")) == [2, 3]

    back = await groups.join(READERS, instance_id="worker-1")

    assert shards_of(back) == [0, 1]


async def test_a_static_member_that_does_not_come_back_loses_its_shards(groups, clock):
    await groups.put(READERS, GroupSpec(stream="clicks", static_timeout_ms=60_000))
    await groups.join(READERS, instance_id="worker-1")
    await groups.leave(READERS, "worker-1", for_good=False)
    clock.advance(ms=60_000)

    assert shards_of(await groups.join(READERS, member_id="b")) == [0, 1, 2, 3]


async def test_many_members_join_at_once(groups):
    await asyncio.gather(*(groups.join(READERS, member_id=f"m{nth}") for nth in range(20)))
    for _ in range(3):
        told = [await groups.fetch(READERS, f"m{nth}") for nth in range(20)]

    counts = Counter(len(one.membership.assigned) for one in told)
    assert counts == {1: 4, 0: 16}


async def test_after_an_outage_nobody_is_expelled_for_a_session(settings, clock):
    async with open_storage(settings, clock=clock) as storage:  # with the limits of a deployment
        groups = storage.groups
        await storage.catalog.put_stream(CLICKS, StreamSpec(shards=4))
        await groups.put(READERS, GroupSpec(stream="clicks"))
        await groups.join(READERS, member_id="a")
        await groups.join(READERS, member_id="b")
        await groups.heartbeat(READERS, "a", owned=[])
        clock.advance(ms=10 * SESSION_MS)  # nobody reached the database

        await groups.heartbeat(READERS, "b")
        for _ in range(SESSION_MS // 1_000 - 1):
            clock.advance(ms=1_000)
            await settle_groups(storage)
            await groups.heartbeat(READERS, "b")
        _, members, _ = await groups.describe(READERS)
        clock.advance(ms=1_000)
        told = await groups.heartbeat(READERS, "b")

        assert {member.member_id for member in members} == {"a", "b"}
        assert shards_of(told) == [0, 1, 2, 3]


# Reading and committing


async def test_a_fetch_can_be_repeated_until_it_is_committed(storage, groups):
    await fill(storage)

    first = await groups.fetch(READERS, "a")
    again = await groups.fetch(READERS, "a")
    await groups.commit(READERS, commits(again))
    after = await groups.fetch(READERS, "a")

    assert data(first) == data(again)
    assert len(data(first)) == 12
    assert (data(after), after.positions) == ([], {})


async def test_a_fetch_reads_on_from_positions_of_this_generation(storage, groups):
    await fill(storage)
    first = await groups.fetch(READERS, "a", records_max=4)
    generation = first.membership.generation

    second = await groups.fetch(
        READERS, "a", positions=first.positions, generation=generation, records_max=4
    )
    of_old = await groups.fetch(
        READERS, "a", positions=first.positions, generation=0, records_max=4
    )

    assert data(first) == [b"0.0", b"1.0", b"2.0", b"3.0"]
    assert data(second) == [b"0.1", b"1.1", b"2.1", b"3.1"]
    assert data(of_old) == data(first)


async def test_a_waiting_fetch_hears_of_a_record(storage, groups):
    await groups.fetch(READERS, "a")
    waiting = asyncio.create_task(groups.fetch(READERS, "a", wait_ms=10_000))
    await asyncio.sleep(0.05)

    await storage.streams.append_to_shard(CLICKS, 3, [Record(b"new")])

    assert data(await asyncio.wait_for(waiting, 5)) == [b"new"]


async def test_two_members_share_what_there_is(storage, groups):
    await fill(storage)
    await groups.fetch(READERS, "a")
    await groups.fetch(READERS, "b")

    a, b = await groups.fetch(READERS, "a"), await groups.fetch(READERS, "b")

    assert len(data(a)) == len(data(b)) == 6
    assert not set(data(a)) & set(data(b))


async def test_a_commit_answers_shard_by_shard(storage, groups):
    await fill(storage)
    generation = (await groups.join(READERS, member_id="a")).generation
    asked = [
        Commit(0, 2, "a", generation),
        Commit(1, 4, "a", generation),
        Commit(9, 0, "a", generation),
    ]

    done, past_the_end, nowhere = await groups.commit(READERS, asked)

    assert done == Committed(0, 2)
    assert isinstance(past_the_end, OffsetOutOfRange)
    assert isinstance(nowhere, ShardNotFound)


async def test_a_commit_never_moves_back(storage, groups):
    await fill(storage)
    generation = (await groups.join(READERS, member_id="a")).generation
    await groups.commit(READERS, [Commit(0, 3, "a", generation)])

    [result] = await groups.commit(READERS, [Commit(0, 1, "a", generation)])

    assert result == Committed(0, 3)


async def test_commits_at_one_time_are_each_answered(storage, groups):
    await fill(storage, 50)
    generation = (await groups.join(READERS, member_id="a")).generation
    asked = [Commit(shard, at, "a", generation) for at in range(1, 51) for shard in range(4)]

    results = await asyncio.gather(*(groups.commit(READERS, [one]) for one in asked))
    stale = await groups.commit(READERS, [Commit(0, 50, "b", generation)])

    reached = dict.fromkeys(range(4), 0)
    for [result] in results:
        assert isinstance(result, Committed)
        reached[result.shard] = max(reached[result.shard], result.offset)
    assert set(reached.values()) == {50}
    assert isinstance(stale[0], MemberUnknown)


async def test_a_commit_says_its_member_and_generation(storage, groups):
    await fill(storage)

    [result] = await groups.commit(READERS, [Commit(0, 1)])

    assert isinstance(result, ValidationFailed)


async def test_what_expired_unread_is_a_gap(storage, groups, clock):
    await fill(storage)
    await groups.commit(READERS, commits(await groups.fetch(READERS, "a", records_max=4)))
    clock.advance(ms=8 * 86_400_000)
    await storage.streams.append_to_shard(CLICKS, 0, [Record(b"new")])
    await storage.streams.trim(CLICKS, 1_000)

    found = await groups.fetch(READERS, "a")

    assert data(found) == [b"new"]
    assert {(shard, gap.first, gap.next, gap.reason) for shard, gap in found.gaps} >= {
        (0, 1, 3, "expired")
    }


# Simple groups


async def test_a_simple_group_keeps_offsets_without_members(storage, groups):
    simple = GroupName("simple")
    await fill(storage)
    await groups.put(simple, GroupSpec(stream="clicks", kind=GroupKind.SIMPLE))

    first = await groups.fetch(simple)
    committed = await groups.commit(simple, [Commit(0, 3), Commit(1, 1)])
    rest = await groups.fetch(simple)

    assert len(data(first)) == 12
    assert committed == [Committed(0, 3), Committed(1, 1)]
    assert len(data(rest)) == 8
    with pytest.raises(ValidationFailed):
        await groups.join(simple)
    with pytest.raises(ValidationFailed):
        await groups.fetch(READERS)


async def test_a_reset_fences_what_a_simple_group_read_before(storage, groups):
    simple = GroupName("simple")
    await fill(storage)
    await groups.put(simple, GroupSpec(stream="clicks", kind=GroupKind.SIMPLE))
    read = await groups.fetch(simple)
    await groups.reset(simple, ResetSpec(to=ResetTo.LATEST))

    results = await groups.commit(simple, commits(read))

    assert all(isinstance(one, StaleGeneration) for one in results)


# Reset and bookmarks


async def test_a_dry_run_shows_what_a_reset_would_change(storage, groups):
    await fill(storage)
    await groups.commit(READERS, commits(await groups.fetch(READERS, "a", records_max=4)))

    shown = await groups.reset(READERS, ResetSpec(to=ResetTo.LATEST, shards=(1, 2)), dry_run=True)
    after = await groups.fetch(READERS, "a")

    assert [(one.shard, one.before, one.after) for one in shown] == [(1, 1, 3), (2, 1, 3)]
    assert len(data(after)) == 8


async def test_a_reset_of_a_group_at_work_fences_what_its_members_read(storage, groups):
    """G2 and G3: only the reset moves it back, and what was read before cannot undo it."""
    await fill(storage)
    read = await groups.fetch(READERS, "a")
    await groups.commit(READERS, commits(read))

    shown = await groups.reset(READERS, ResetSpec(to=ResetTo.EARLIEST))
    stale = await groups.commit(READERS, commits(read))
    again = await groups.fetch(READERS, "a")

    assert [(one.before, one.after) for one in shown] == [(3, 0)] * 4
    assert all(isinstance(one, StaleGeneration) for one in stale)
    assert data(again) == data(read)
    assert shards_of(again.membership) == [0, 1, 2, 3]


async def test_a_reset_goes_to_a_time_or_to_offsets(storage, groups, clock):
    await fill(storage)
    clock.advance(ms=1_000)
    at_ms = clock.now_ms()
    await fill(storage, 1)

    by_time = await groups.reset(READERS, ResetSpec(to=ResetTo.TIME, time_ms=at_ms))
    by_offset = await groups.reset(READERS, ResetSpec(to=ResetTo.OFFSETS, offsets={2: 1}))

    assert [one.after for one in by_time] == [3, 3, 3, 3]
    assert [(one.shard, one.before, one.after) for one in by_offset] == [(2, 3, 1)]
    with pytest.raises(OffsetOutOfRange):
        await groups.reset(READERS, ResetSpec(to=ResetTo.OFFSETS, offsets={2: 5}))
    with pytest.raises(ShardNotFound):
        await groups.reset(READERS, ResetSpec(to=ResetTo.OFFSETS, offsets={7: 0}))
    with pytest.raises(ValidationFailed):
        await groups.reset(READERS, ResetSpec(to=ResetTo.OFFSETS))


async def test_a_bookmark_is_a_place_to_come_back_to(storage, groups):
    await fill(storage)
    await groups.commit(READERS, commits(await groups.fetch(READERS, "a", records_max=4)))
    saved = await groups.save_bookmark(READERS, "before-deploy")
    await groups.commit(READERS, commits(await groups.fetch(READERS, "a")))

    await groups.reset(READERS, ResetSpec(to=ResetTo.BOOKMARK, bookmark="before-deploy"))
    again = await groups.fetch(READERS, "a")

    assert saved.positions == dict.fromkeys(range(4), 1)
    assert len(data(again)) == 8
    assert await groups.bookmarks(READERS) == [saved]


async def test_bookmarks_are_replaced_and_deleted(storage, groups):
    await fill(storage)
    await groups.save_bookmark(READERS, "here", {0: 1})
    replaced = await groups.save_bookmark(READERS, "here", {1: 2})

    assert [one.positions for one in await groups.bookmarks(READERS)] == [replaced.positions]
    with pytest.raises(OffsetOutOfRange):
        await groups.save_bookmark(READERS, "there", {0: 9})
    await groups.delete_bookmark(READERS, "here")
    with pytest.raises(BookmarkNotFound):
        await groups.delete_bookmark(READERS, "here")
    with pytest.raises(BookmarkNotFound):
        await groups.reset(READERS, ResetSpec(to=ResetTo.BOOKMARK, bookmark="here"))


# Lag


async def test_lag_is_in_records_and_in_time(storage, groups, clock):
    await fill(storage)
    clock.advance(ms=5_000)
    await groups.commit(READERS, commits(await groups.fetch(READERS, "a", records_max=4)))
    await groups.commit(
        READERS, [Commit(3, 3, "a", (await groups.heartbeat(READERS, "a")).generation)]
    )

    lags = await groups.lag(READERS)

    assert [one.records for one in lags] == [2, 2, 2, 0]
    assert [one.lag_ms for one in lags] == [5_000, 5_000, 5_000, 0]
    assert lags[0].loss_in_ms == 7 * 86_400_000 - 5_000
    assert lags[3].loss_in_ms is None
    assert {one.owner for one in lags} == {"a"}


async def test_holes_are_no_lag(storage, groups, clock):
    await fill(storage)
    epoch = storage.streams._keeper._epoch
    stream = await storage.catalog.stream(CLICKS)
    with redis.Redis.from_url(storage.health._settings.redis_url) as client:
        client.hdel(STORE_KEY, "epoch")
    epoch._run_id = ""
    await epoch.check()
    await storage.streams.append_to_shard(CLICKS, 0, [Record(b"after the hole")])

    [first, *_] = await groups.lag(READERS)

    assert stream.shards[0].index == first.shard
    assert first.tip > 10_000
    assert first.records == 4


# Two processes


async def test_two_processes_agree(storage, settings, clock):
    await fill(storage)
    async with open_storage(settings, clock=clock, limits=NEVER_AWAY) as other:
        await storage.groups.fetch(READERS, "a")
        await other.groups.fetch(READERS, "b")
        a = await storage.groups.fetch(READERS, "a")
        b = await other.groups.fetch(READERS, "b")
        crossed = await other.groups.commit(READERS, commits(a))
        done = await storage.groups.commit(READERS, commits(b))

        assert not set(shards_of(a.membership)) & set(shards_of(b.membership))
        assert all(isinstance(one, Committed) for one in [*crossed, *done])
        assert data(await other.groups.fetch(READERS, "a")) == []


# Resharding

HALF = 2**125  # in the middle of the first of four shards


async def test_children_are_read_after_their_parent_was_committed_to_its_end(storage, groups):
    await fill(storage)
    await groups.fetch(READERS, "a")
    await storage.streams.split(CLICKS, 0, HALF)
    await storage.streams.append_to_shard(CLICKS, 4, [Record(b"child")])

    before = await groups.fetch(READERS, "a")
    await groups.commit(READERS, commits(before))
    after = await groups.fetch(READERS, "a")

    assert len(data(before)) == 12
    assert data(after) == [b"child"]
    assert shards_of(after.membership) == [1, 2, 3, 4, 5]


async def test_a_parent_that_was_committed_before_it_was_closed_is_finished_by_the_next_fetch(
    storage, groups
):
    await fill(storage)
    await groups.commit(READERS, commits(await groups.fetch(READERS, "a")))
    await storage.streams.split(CLICKS, 0, HALF)
    await storage.streams.append_to_shard(CLICKS, 5, [Record(b"child")])

    assert data(await groups.fetch(READERS, "a")) == [b"child"]


async def test_a_parent_that_was_committed_before_it_was_closed_is_finished_by_a_sweep(
    storage, groups
):
    await fill(storage)
    await groups.commit(READERS, commits(await groups.fetch(READERS, "a")))
    await storage.streams.split(CLICKS, 0, HALF)

    await settle_groups(storage)

    assert shards_of(await groups.heartbeat(READERS, "a")) == [1, 2, 3, 4, 5]


async def test_what_was_read_ahead_of_a_closed_shard_is_not_committed_by_that(storage, groups):
    """A fetch from positions beyond the committed ones meets the end; the group has not been there."""
    await fill(storage)
    first = await groups.fetch(READERS, "a")
    await storage.streams.split(CLICKS, 0, HALF)

    ahead = await groups.fetch(
        READERS, "a", positions=first.positions, generation=first.membership.generation
    )
    again = await groups.fetch(READERS, "a")

    assert data(ahead) == []
    assert data(again) == data(first)
    assert shards_of(again.membership) == [0, 1, 2, 3]


async def test_a_process_that_has_not_heard_of_a_split_finishes_the_parent_too(
    storage, settings, clock
):
    """Its definition says that the shard is open; what it reads says that it has ended."""
    await fill(storage)
    async with open_storage(settings, clock=clock, limits=NEVER_AWAY) as other:
        read = await other.groups.fetch(READERS, "a")
        await other.groups.commit(READERS, commits(read))
        await storage.streams.split(CLICKS, 0, HALF)

        async with asyncio.timeout(5):
            after = await other.groups.fetch(READERS, "a", wait_ms=100)

        assert shards_of(after.membership) == [1, 2, 3, 4, 5]


async def test_a_waiting_fetch_goes_on_with_the_children(storage, groups):
    await groups.fetch(READERS, "a")
    waiting = asyncio.create_task(groups.fetch(READERS, "a", wait_ms=15_000))
    await asyncio.sleep(0.05)

    await storage.streams.split(CLICKS, 0, HALF)
    await asyncio.sleep(0.05)
    await storage.streams.append_to_shard(CLICKS, 5, [Record(b"child")])

    assert data(await asyncio.wait_for(waiting, 10)) == [b"child"]


async def test_a_merged_shard_waits_for_both_parents(storage, groups):
    await fill(storage)
    await storage.streams.merge(CLICKS, 0, 1)
    await storage.streams.append_to_shard(CLICKS, 4, [Record(b"child")])
    read = await groups.fetch(READERS, "a")
    generation = read.membership.generation

    await groups.commit(READERS, [Commit(0, 3, "a", generation)])
    one = await groups.heartbeat(READERS, "a")
    await groups.commit(READERS, [Commit(1, 3, "a", generation)])
    both = await groups.heartbeat(READERS, "a")

    assert len(data(read)) == 12
    assert shards_of(one) == [1, 2, 3]
    assert shards_of(both) == [2, 3, 4]


async def test_a_reset_to_before_a_split_reads_parent_and_children_again(storage, groups):
    await fill(storage)
    await storage.streams.split(CLICKS, 0, HALF)
    await storage.streams.append_to_shard(CLICKS, 4, [Record(b"child")])
    await groups.commit(READERS, commits(await groups.fetch(READERS, "a")))
    await groups.commit(READERS, commits(await groups.fetch(READERS, "a")))

    await groups.reset(READERS, ResetSpec(to=ResetTo.EARLIEST))
    parents = await groups.fetch(READERS, "a")
    await groups.commit(READERS, commits(parents))
    children = await groups.fetch(READERS, "a")

    assert shards_of(parents.membership) == [0, 1, 2, 3]
    assert (len(data(parents)), data(children)) == (12, [b"child"])


async def test_a_group_at_the_latest_begins_with_the_open_shards(storage, groups):
    late = GroupName("late")
    await fill(storage)
    await storage.streams.split(CLICKS, 0, HALF)
    await groups.put(late, GroupSpec(stream="clicks", start=StartAt.LATEST))

    assert shards_of(await groups.join(late)) == [1, 2, 3, 4, 5]


async def test_a_simple_group_follows_a_split_too(storage, groups):
    simple = GroupName("simple")
    await fill(storage, 1)
    await groups.put(simple, GroupSpec(stream="clicks", kind=GroupKind.SIMPLE))
    await storage.streams.split(CLICKS, 0, HALF)
    await storage.streams.append_to_shard(CLICKS, 4, [Record(b"child")])

    first = await groups.fetch(simple)
    await groups.commit(simple, commits(first))
    second = await groups.fetch(simple)
    results = await groups.commit(simple, commits(second))

    assert (len(data(first)), data(second)) == (4, [b"child"])
    assert all(isinstance(one, Committed) for one in results)
    assert data(await groups.fetch(simple)) == []


async def test_a_shard_that_expired_unfinished_is_told_as_a_gap_until_its_children_are_committed(
    storage, groups, clock
):
    await fill(storage, 1)
    await groups.fetch(READERS, "a")
    await storage.streams.split(CLICKS, 0, HALF)
    clock.advance(ms=8 * 86_400_000)
    await storage.streams.trim(CLICKS, 1_000)
    await storage.streams.expire_shards(CLICKS)

    told = await groups.fetch(READERS, "a", wait_ms=1_000)
    again = await groups.fetch(READERS, "a", wait_ms=1_000)
    results = await groups.commit(READERS, commits(again))
    after = await groups.fetch(READERS, "a")

    assert shards_of(told.membership) == [1, 2, 3, 4, 5]
    assert (0, Gap(0, 0, "expired")) in told.gaps
    assert again == told
    assert all(isinstance(one, Committed) for one in results)
    assert after.gaps == []
    assert [one.shard for one in await groups.lag(READERS)] == [1, 2, 3, 4, 5]


# ── Retention by interest ──


async def test_what_all_groups_have_committed_is_forgotten(storage, groups):
    spec = StreamSpec(shards=1, drop_when_read=True)
    await storage.catalog.put_stream(INTEREST, spec)
    for number in range(4):  # an entry each
        await storage.streams.append(INTEREST, [Record(b"%d" % number, "k")])
    first, second = GroupName("first"), GroupName("second")
    for group in (first, second):
        await groups.put(group, GroupSpec(stream=INTEREST.name, kind=GroupKind.SIMPLE))

    async def oldest_after(group: GroupName, offset: int) -> int:
        [done] = await groups.commit(group, [Commit(0, offset)])
        assert isinstance(done, Committed)
        await sweeper.drop_read(storage)
        [state] = await storage.streams.shards(INTEREST)
        start: int = state.start
        return start

    assert await oldest_after(first, 3) == 0  # the second group has committed nothing
    assert await oldest_after(second, 1) == 1
    assert await oldest_after(second, 4) == 3


async def test_without_a_group_nothing_is_forgotten_for_being_read(storage):
    await storage.catalog.put_stream(INTEREST, StreamSpec(shards=1, drop_when_read=True))
    await storage.streams.append(INTEREST, [Record(b"1", "k")])

    await sweeper.drop_read(storage)

    [state] = await storage.streams.shards(INTEREST)
    assert (state.start, state.next) == (0, 1)
