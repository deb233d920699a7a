"""Membership of groups, and the assignment of shards."""

import asyncio
from collections import Counter

import pytest

from consumers.maintenance.tasks.groups import rebalance_groups
from storage.bootstrap import open_storage
from storage.domain.errors import MemberUnknown, StaleGeneration
from storage.domain.groups.group import Commit, GroupOffset, GroupSpec
from storage.domain.streams.stream import StreamSpec
from tests.integration.groups.group_reads import (
    CLICKS,
    READERS,
    SESSION_MS,
    commits,
    data,
    fill,
    shards_of,
)

pytestmark = pytest.mark.one_store


async def test_single_member_reads_every_shard(groups):
    joined = await groups.join(READERS)

    assert shards_of(joined) == [0, 1, 2, 3]
    assert (await groups.heartbeat(READERS, joined.member_id)).assigned == joined.assigned


async def test_second_member_gets_released_shards(groups):
    await groups.join(READERS, member_id="a")
    b = await groups.join(READERS, member_id="b")
    membership = await groups.heartbeat(READERS, "a")

    assert shards_of(b) == []
    assert (shards_of(membership), [place.shard for place in membership.revoked]) == (
        [0, 1],
        [2, 3],
    )

    await groups.heartbeat(READERS, "a", owned=[0, 1, 3])
    assert shards_of(await groups.heartbeat(READERS, "b")) == [2]
    await groups.heartbeat(READERS, "a", owned=[0, 1])
    assert shards_of(await groups.heartbeat(READERS, "b")) == [2, 3]


async def test_shard_being_released_can_still_be_committed(storage, groups):
    await fill(storage)
    a = await groups.join(READERS, member_id="a")
    await groups.join(READERS, member_id="b")

    before = await groups.commit(READERS, [Commit(3, 2, "a", a.generation)])
    await groups.heartbeat(READERS, "a", owned=[])
    after = await groups.commit(READERS, [Commit(3, 3, "a", a.generation)])

    assert before == [GroupOffset(3, 2)]
    assert isinstance(after[0], StaleGeneration)
    b = await groups.heartbeat(READERS, "b")
    assert {place.shard: place.committed for place in b.assigned}[3] == 2


async def test_unreleased_shard_moves_at_deadline(groups, clock):
    spec = GroupSpec(stream="clicks", revoke_timeout_ms=5_000)
    await groups.put(READERS, spec)
    await groups.join(READERS, member_id="a")
    await groups.join(READERS, member_id="b")

    clock.advance(ms=5_000)
    await groups.heartbeat(READERS, "a")

    assert shards_of(await groups.heartbeat(READERS, "b")) == [2, 3]


async def test_silent_member_is_expelled_by_heartbeat_of_another(groups, clock):
    await groups.join(READERS, member_id="a")
    await groups.join(READERS, member_id="b")
    clock.advance(ms=SESSION_MS - 1)
    await groups.heartbeat(READERS, "b")
    clock.advance(ms=1)

    membership = await groups.heartbeat(READERS, "b")

    assert shards_of(membership) == [0, 1, 2, 3]
    with pytest.raises(MemberUnknown):
        await groups.heartbeat(READERS, "a")


async def test_maintenance_expels_silent_members(storage, groups, clock):
    await groups.join(READERS, member_id="a")
    clock.advance(ms=SESSION_MS)

    found = await rebalance_groups.work(storage)

    _, members, shards = await groups.describe(READERS)
    assert (found, members) == (1, ())
    assert all(shard.lease.owner is None for shard in shards.values())
    assert await rebalance_groups.work(storage) == 0


async def test_member_past_its_session_cannot_commit(storage, groups, clock):
    """G2: the shard moved to another member meanwhile."""
    await fill(storage)
    asleep = await groups.fetcher.fetch(READERS, "a")
    clock.advance(ms=SESSION_MS)
    fetched_records = await groups.fetcher.fetch(READERS, "b")

    results = await groups.commit(READERS, commits(asleep))

    assert all(isinstance(result, MemberUnknown) for result in results)
    assert data(fetched_records) == data(asleep) == data(await groups.fetcher.fetch(READERS, "b"))


async def test_rejoined_member_fences_its_previous_instance(storage, groups, clock):
    """G2: the same member id after a restart."""
    await fill(storage)
    asleep = await groups.fetcher.fetch(READERS, "a")
    clock.advance(ms=SESSION_MS)
    await rebalance_groups.work(storage)
    await groups.fetcher.fetch(READERS, "a")

    results = await groups.commit(READERS, commits(asleep))

    assert all(isinstance(result, StaleGeneration) for result in results)


async def test_unknown_generation_cannot_commit(storage, groups):
    await fill(storage)
    generation = (await groups.join(READERS, member_id="a")).generation

    [result] = await groups.commit(READERS, [Commit(0, 1, "a", generation + 1)])

    assert isinstance(result, StaleGeneration)


async def test_late_member_keeps_shards_that_nobody_claimed(storage, groups, clock):
    await fill(storage)
    late = await groups.fetcher.fetch(READERS, "a")
    clock.advance(ms=10 * SESSION_MS)

    results = await groups.commit(READERS, commits(late))

    assert all(isinstance(result, GroupOffset) for result in results)
    assert shards_of(await groups.heartbeat(READERS, "a")) == [0, 1, 2, 3]


async def test_rejoin_increments_generation_and_fences(groups):
    old = await groups.join(READERS, member_id="a")
    await groups.join(READERS, member_id="a")

    [result] = await groups.commit(READERS, [Commit(0, 0, "a", old.generation)])

    assert isinstance(result, StaleGeneration)
    with pytest.raises(StaleGeneration):
        await groups.heartbeat(READERS, "a", generation=old.generation)


async def test_leaving_member_releases_its_shards_immediately(groups):
    await groups.join(READERS, member_id="a")
    await groups.join(READERS, member_id="b")

    await groups.leave(READERS, "a")

    assert shards_of(await groups.heartbeat(READERS, "b")) == [0, 1, 2, 3]
    with pytest.raises(MemberUnknown):
        await groups.leave(READERS, "a")


async def test_static_member_gets_its_shards_back(groups, clock):
    await groups.join(READERS, instance_id="worker-1")
    await groups.join(READERS, member_id="b")
    await groups.heartbeat(READERS, "worker-1", owned=[0, 1])
    await groups.leave(READERS, "worker-1", for_good=False)
    for _ in range(3):
        clock.advance(ms=SESSION_MS - 1)
        assert shards_of(await groups.heartbeat(READERS, "b")) == [2, 3]

    back = await groups.join(READERS, instance_id="worker-1")

    assert shards_of(back) == [0, 1]


async def test_static_member_that_stays_away_loses_its_shards(groups, clock):
    await groups.put(READERS, GroupSpec(stream="clicks", static_timeout_ms=60_000))
    await groups.join(READERS, instance_id="worker-1")
    await groups.leave(READERS, "worker-1", for_good=False)
    clock.advance(ms=60_000)

    assert shards_of(await groups.join(READERS, member_id="b")) == [0, 1, 2, 3]


async def test_many_members_join_concurrently(groups):
    await asyncio.gather(*(groups.join(READERS, member_id=f"m{nth}") for nth in range(20)))
    for _ in range(3):
        fetched_records = [await groups.fetcher.fetch(READERS, f"m{nth}") for nth in range(20)]

    counts = Counter(len(fetched_record.membership.assigned) for fetched_record in fetched_records)
    assert counts == {1: 4, 0: 16}


async def test_members_have_full_session_after_outage(settings, clock):
    async with open_storage(settings, clock=clock) as storage:  # with the limits of a deployment
        groups = storage.groups
        await storage.catalog.put_stream(CLICKS, StreamSpec(shards=4))
        await groups.put(READERS, GroupSpec(stream="clicks"))
        await groups.join(READERS, member_id="a")
        await groups.join(READERS, member_id="b")
        await groups.heartbeat(READERS, "a", owned=[])
        clock.advance(ms=10 * SESSION_MS)  # the database was unreachable

        await groups.heartbeat(READERS, "b")
        for _ in range(SESSION_MS // 1_000 - 1):
            clock.advance(ms=1_000)
            await rebalance_groups.work(storage)
            await groups.heartbeat(READERS, "b")
        _, members, _ = await groups.describe(READERS)
        clock.advance(ms=1_000)
        membership = await groups.heartbeat(READERS, "b")

        assert {member.member_id for member in members} == {"a", "b"}
        assert shards_of(membership) == [0, 1, 2, 3]
