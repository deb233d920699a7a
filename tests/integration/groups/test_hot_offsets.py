"""Commits of groups through crashes, late scripts, losses, and processes of the former release."""

from contextlib import asynccontextmanager

import pytest
import redis

from consumers.maintenance.tasks.group_offsets import copy_group_offsets
from storage.bootstrap import Storage, open_storage
from storage.domain import limits
from storage.domain.errors import (
    GroupNotFound,
    MemberUnknown,
    StaleGeneration,
    StorageUnavailable,
)
from storage.domain.groups.group import (
    Commit,
    CommitResult,
    GroupKind,
    GroupOffset,
    GroupSpec,
    ResetSpec,
    ResetTo,
)
from storage.domain.names import GroupName
from storage.postgres.repositories.group_mapping import OffsetCopy
from storage.redis.keys import group_offsets_key
from tests.conditions import eventually
from tests.group_faults import FormerRelease, interrupt, lose_offsets
from tests.integration.groups.group_reads import (
    CLICKS,
    NEVER_AWAY,
    READERS,
    SESSION_MS,
    commits,
    data,
    fill,
)

pytestmark = pytest.mark.one_store

SIMPLE = GroupName("simple")
DONE = [GroupOffset(shard, 3) for shard in range(4)]


@pytest.fixture
async def other(settings, clock, storage):
    """Another process of the deployment."""
    async with open_storage(settings, clock=clock, limits=NEVER_AWAY) as other:
        yield other


@pytest.fixture
def former(database_url):
    return FormerRelease(database_url, READERS)


async def read(storage: Storage, member: str = "a", generation: int = 0):
    return await storage.groups.fetcher.fetch(READERS, member, generation=generation)


async def committed(storage: Storage, name: GroupName = READERS) -> list[int | None]:
    _, _, shards = await storage.groups.describe(name)
    return [shard.committed for _, shard in sorted(shards.items())]


async def refusals(storage: Storage, stale: list[Commit]) -> set[type[CommitResult]]:
    return {type(one) for one in await storage.groups.commit(READERS, stale)}


@asynccontextmanager
async def hot_copy(redis_url: str, storage: Storage):
    """Restore the group's hash at the end, as a store that is restored from a copy does."""
    group = await storage.groups.get(READERS)
    key = group_offsets_key(READERS.namespace, group.group_id)
    with redis.Redis.from_url(redis_url) as store:
        copy = store.dump(key)
        yield
        assert isinstance(copy, bytes)
        store.restore(key, 0, copy, replace=True)


# A rebalance that is interrupted


async def test_commit_is_accepted_after_rebalance_ended_before_its_commit(storage, other):
    await fill(storage)
    first = await read(storage)
    faults = interrupt(other)
    faults.dies_after_freeze = True
    with pytest.raises(StorageUnavailable):
        await other.groups.join(READERS, member_id="b")

    assert await storage.groups.commit(READERS, commits(first)) == DONE
    assert await committed(other) == [3, 3, 3, 3]


async def test_commits_go_on_after_rebalance_ended_before_its_seed(storage, other):
    await fill(storage)
    first = await read(storage)
    await storage.groups.commit(READERS, commits(first)[:1])
    faults = interrupt(other)
    faults.withholds_seeds = True
    await other.groups.join(READERS, member_id="b")

    assert await committed(storage) == [3, None, None, None]
    assert await storage.groups.commit(READERS, commits(first)) == DONE
    assert faults.withheld
    assert not await faults.send_withheld()
    assert await committed(storage) == [3, 3, 3, 3]


async def test_late_seed_does_not_restore_former_owner(storage, other, clock):
    """A process is suspended between its commit and its seed; others go on meanwhile (G2)."""
    await fill(storage)
    faults = interrupt(other)
    faults.withholds_seeds = True
    stale = commits(await read(other))
    faults.withholds_seeds = False
    clock.advance(ms=SESSION_MS + 1)
    successor = await read(storage, "b")

    assert not await faults.send_withheld()
    assert await refusals(other, stale) <= {StaleGeneration, MemberUnknown}
    assert await storage.groups.commit(READERS, commits(successor)) == DONE


async def test_late_freeze_stops_nothing(storage, other):
    """A process that has lost its lock freezes the group after the next rebalance."""
    await fill(storage)
    first = await read(storage)
    await other.groups._hot.freeze(first.membership.group, "late")

    assert await storage.groups.commit(READERS, commits(first)) == DONE


async def test_reset_moves_back_what_was_committed_last(storage, other):
    await fill(storage)
    first = await read(storage)
    await storage.groups.commit(READERS, commits(first))

    reset = await other.groups.positions.reset(READERS, ResetSpec(to=ResetTo.EARLIEST))

    assert [one.before for one in reset] == [3, 3, 3, 3]
    assert await committed(storage) == [0, 0, 0, 0]
    assert await refusals(storage, commits(first)) == {StaleGeneration}


@pytest.mark.parametrize("is_frozen", [False, True])
async def test_rows_from_before_a_rebalance_are_read_again(storage, other, monkeypatch, is_frozen):
    """An offset was reported lower than before: rows and offsets were of different leases.

    The next rebalance may have frozen the group already.
    """
    await fill(storage)
    storage.groups.copier.add = lambda _: None
    await storage.groups.commit(READERS, commits(await read(storage)))
    describe, rebalances = storage.groups._rows.describe, ["a"]

    async def outdated(name: GroupName):
        rows = await describe(name)
        if rebalances:
            await other.groups.join(READERS, member_id=rebalances.pop())
            if is_frozen:
                await storage.groups._offsets._hot.freeze(rows[0], "fence")
        return rows

    monkeypatch.setattr(storage.groups._rows, "describe", outdated)

    assert await committed(storage) == [3, 3, 3, 3]


async def test_rebalance_without_hot_store_is_refused(storage, monkeypatch):
    async def freeze(*_: object) -> None:
        raise StorageUnavailable("The store is unreachable.")

    monkeypatch.setattr(storage.groups._hot, "freeze", freeze)

    with pytest.raises(StorageUnavailable):
        await storage.groups.join(READERS, member_id="a")
    _, members, _ = await storage.groups.describe(READERS)
    assert members == ()


# A store that lost the offsets, or was restored


async def test_lost_offsets_are_those_of_the_rows(storage, other):
    await fill(storage)
    first = await read(storage)
    await storage.groups.commit(READERS, commits(first)[:2])
    await copy_group_offsets.work(other)
    await lose_offsets(storage, READERS)

    assert await committed(storage) == [3, 3, None, None]
    assert await storage.groups.commit(READERS, commits(first)) == DONE


async def test_stale_commit_is_refused_after_offsets_were_lost(storage, clock):
    await fill(storage)
    stale = commits(await read(storage))
    clock.advance(ms=SESSION_MS + 1)
    await read(storage, "b")
    await lose_offsets(storage, READERS)

    assert await refusals(storage, stale) <= {StaleGeneration, MemberUnknown}
    assert await committed(storage) == [None] * 4


async def test_restored_offsets_of_former_lease_move_nothing(storage, redis_url, clock):
    await fill(storage)
    first = await read(storage)
    async with hot_copy(redis_url, storage):
        await storage.groups.commit(READERS, commits(first))
        clock.advance(ms=SESSION_MS + 1)
        successor = await read(storage, "b")
    stale = [Commit(commit.shard, 1, "a", commit.generation) for commit in commits(first)]

    await storage.groups.commit(READERS, stale)

    assert await committed(storage) == [3, 3, 3, 3]
    assert data(await read(storage, "b", successor.membership.generation)) == []
    assert await refusals(storage, stale) <= {StaleGeneration, MemberUnknown}


async def test_commit_of_another_store_epoch_is_decided_by_rows(storage):
    """The store was restored from a copy, and the process has opened a new epoch."""
    await fill(storage)
    first = await read(storage)
    provisioner = storage.streams._provisioner
    provisioner._epoch.current += 1

    assert (await storage.groups._hot.read(first.membership.group)).generation is None
    assert await storage.groups.commit(READERS, commits(first)) == DONE
    seeded = await storage.groups._hot.read(first.membership.group)
    assert seeded.generation == first.membership.generation


async def test_commits_renew_time_to_live_once_a_day(storage, redis_url, clock):
    await fill(storage)
    first = await read(storage)
    key = group_offsets_key(READERS.namespace, first.membership.group.group_id)
    with redis.Redis.from_url(redis_url) as store:
        await storage.groups.commit(READERS, commits(first))
        remaining = []
        for ms in (limits.DAY_MS // 2, limits.DAY_MS):
            store.pexpire(key, limits.DAY_MS)
            clock.advance(ms=ms)
            await storage.groups.commit(READERS, commits(first))
            remaining.append(store.pttl(key))

    assert remaining[0] <= limits.DAY_MS < 6 * limits.DAY_MS < remaining[1]


# Copies in the rows


async def test_commit_is_copied_to_rows_in_a_second(storage, former):
    await fill(storage)
    await storage.groups.commit(READERS, commits(await read(storage)))

    async def rows() -> list[int]:
        return [at or 0 for at in former.committed()]

    await eventually(rows, [3, 3, 3, 3])


async def test_closed_process_leaves_exact_rows(settings, clock, storage, former):
    await fill(storage)
    async with open_storage(settings, clock=clock, limits=NEVER_AWAY) as leaving:
        await leaving.groups.commit(READERS, commits(await read(leaving)))

    assert former.committed() == [3, 3, 3, 3]


async def test_maintenance_copies_what_ended_process_left(storage, other, former):
    await fill(storage)
    other.groups.copier.add = lambda _: None  # it is killed
    await other.groups.commit(READERS, commits(await read(other)))
    assert former.committed() == [None] * 4

    await copy_group_offsets.work(storage)

    assert former.committed() == [3, 3, 3, 3]


async def test_unreadable_group_keeps_no_other_from_being_copied(
    storage, other, former, monkeypatch
):
    await fill(storage)
    await storage.groups.put(GroupName("a-first"), GroupSpec(stream=CLICKS.name))
    other.groups.copier.add = lambda _: None  # it is killed
    await other.groups.commit(READERS, commits(await read(other)))
    read_many = storage.groups._hot.read_many

    async def read_some(groups):
        unread = StorageUnavailable("its part of the store is away")
        results = zip(groups, await read_many(groups), strict=True)
        return [read if group.name == READERS else unread for group, read in results]

    monkeypatch.setattr(storage.groups._hot, "read_many", read_some)

    with pytest.raises(StorageUnavailable, match="is away"):
        await copy_group_offsets.work(storage)

    assert former.committed() == [3, 3, 3, 3]


async def test_late_copy_does_not_undo_reset(storage, other, former):
    await fill(storage)
    copies = list[OffsetCopy]()
    other.groups.copier.add = copies.append
    await other.groups.commit(READERS, commits(await read(other)))
    await storage.groups.positions.reset(READERS, ResetSpec(to=ResetTo.EARLIEST))

    await storage.groups._rows.copy_offsets(copies)

    assert former.committed() == [0] * 4
    assert await committed(storage) == [0] * 4


# Processes of the former release


async def test_commit_of_former_release_counts(storage, former):
    await fill(storage)
    first = await read(storage)
    await storage.groups.commit(READERS, [Commit(0, 1, "a", first.membership.generation)])

    assert all(former.commit(commit) for commit in commits(first))

    assert await committed(storage) == [3, 3, 3, 3]
    assert data(await read(storage, generation=first.membership.generation)) == []


async def test_rebalance_of_former_release_fences_commits(storage, former):
    """The hot store does not know of it until the group is settled, so a stale commit moves nothing."""
    await fill(storage)
    first = await read(storage)
    former.grant("b", [0, 1])

    await storage.groups.commit(READERS, commits(first))

    assert (await committed(storage))[:2] == [None, None]
    await storage.groups.heartbeat(READERS, "a")
    assert await refusals(storage, commits(first)[:2]) == {StaleGeneration}
    assert (await committed(storage))[:2] == [None, None]


async def test_member_of_former_release_commits_its_new_shards(storage, former):
    await fill(storage)
    first = await read(storage)
    former.grant("a", [0, 1])
    group, _, _ = await storage.groups.describe(READERS)

    results = await storage.groups.commit(
        READERS, [Commit(shard, 3, "a", group.generation) for shard in range(4)]
    )

    assert results == DONE
    assert group.generation > first.membership.generation
    assert await committed(storage) == [3, 3, 3, 3]


async def test_going_back_rereads_at_most_the_last_second(storage, former):
    """The former release has the rows alone; what it knows is never ahead of the hot store."""
    await fill(storage)
    first = await read(storage)
    await storage.groups.commit(READERS, commits(first)[:2])
    await storage.groups.copier.close()
    await storage.groups.commit(READERS, commits(first))

    assert former.committed() in ([3, 3, None, None], [3, 3, 3, 3])


# Simple groups, and groups that were deleted


async def test_simple_group_commits_without_generation(storage, other):
    await fill(storage)
    await storage.groups.put(SIMPLE, GroupSpec(stream=CLICKS.name, kind=GroupKind.SIMPLE))
    fetched = await storage.groups.fetcher.fetch(SIMPLE)
    positions = [Commit(shard, at) for shard, at in fetched.positions.items()]

    assert await storage.groups.commit(SIMPLE, positions) == DONE
    assert await other.groups.commit(SIMPLE, [Commit(0, 1)]) == [GroupOffset(0, 3)]
    await other.groups.positions.reset(SIMPLE, ResetSpec(to=ResetTo.EARLIEST))
    stale = Commit(0, 3, generation=fetched.membership.generation)
    [refused] = await storage.groups.commit(SIMPLE, [stale])
    assert isinstance(refused, StaleGeneration)
    assert await committed(other, SIMPLE) == [0] * 4


@pytest.mark.parametrize("is_recreated", [False, True])
async def test_process_does_not_commit_to_deleted_group(storage, other, is_recreated):
    """The process has the group cached, and has not heard yet that it was deleted."""
    await fill(storage)
    stale = commits(await read(storage))
    await other.groups.delete(READERS)
    if is_recreated:
        await other.groups.put(READERS, GroupSpec(stream=CLICKS.name))
        assert await refusals(storage, stale) == {MemberUnknown}
        assert await committed(storage) == [None] * 4
    else:
        with pytest.raises(GroupNotFound):
            await storage.groups.commit(READERS, stale)


async def test_commits_share_flushes(storage):
    """Commits to many shards are one script, and move only the shards that the member owns."""
    await fill(storage)
    first = await read(storage)
    await storage.groups.join(READERS, member_id="b")

    results = await storage.groups.commit(
        READERS, [Commit(shard, 3, "b", first.membership.generation) for shard in range(4)]
    )

    assert {type(one) for one in results} == {StaleGeneration}
    assert await storage.groups.commit(READERS, commits(first)) == DONE
