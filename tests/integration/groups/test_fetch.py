"""Fetches and commits of members."""

import asyncio

import msgspec
import pytest

from storage.domain.errors import (
    MemberUnknown,
    OffsetOutOfRange,
    ShardNotFound,
    ValidationFailed,
)
from storage.domain.groups.group import Commit, GroupOffset
from storage.domain.log.record_batch import Record
from tests.integration.groups.group_reads import CLICKS, READERS, commits, data, fill

pytestmark = pytest.mark.one_store


async def test_fetch_is_repeatable_until_commit(storage, groups):
    await fill(storage)

    first = await groups.fetcher.fetch(READERS, "a")
    again = await groups.fetcher.fetch(READERS, "a")
    await groups.commit(READERS, commits(again))
    after = await groups.fetcher.fetch(READERS, "a")

    assert data(first) == data(again)
    assert len(data(first)) == 12
    assert (data(after), after.positions) == ([], {})


async def test_fetch_continues_from_positions_of_its_generation(storage, groups):
    await fill(storage)
    first = await groups.fetcher.fetch(READERS, "a", records_max=4)
    generation = first.membership.generation

    second = await groups.fetcher.fetch(
        READERS, "a", positions=first.positions, generation=generation, records_max=4
    )
    of_old = await groups.fetcher.fetch(
        READERS, "a", positions=first.positions, generation=0, records_max=4
    )

    assert data(first) == [b"0.0", b"1.0", b"2.0", b"3.0"]
    assert data(second) == [b"0.1", b"1.1", b"2.1", b"3.1"]
    assert data(of_old) == data(first)


async def test_waiting_fetch_is_woken_by_record(storage, groups):
    await groups.fetcher.fetch(READERS, "a")
    waiting = asyncio.create_task(groups.fetcher.fetch(READERS, "a", wait_ms=10_000))
    await asyncio.sleep(0.05)

    await storage.streams.append_to_shard(CLICKS, 3, [Record(b"new")])

    assert data(await asyncio.wait_for(waiting, 5)) == [b"new"]


async def test_two_members_share_records(storage, groups):
    await fill(storage)
    await groups.fetcher.fetch(READERS, "a")
    await groups.fetcher.fetch(READERS, "b")

    a, b = await groups.fetcher.fetch(READERS, "a"), await groups.fetcher.fetch(READERS, "b")

    assert len(data(a)) == len(data(b)) == 6
    assert not set(data(a)) & set(data(b))


async def test_commit_is_answered_per_shard(storage, groups):
    await fill(storage)
    generation = (await groups.join(READERS, member_id="a")).generation
    asked = [
        Commit(0, 2, "a", generation),
        Commit(1, 4, "a", generation),
        Commit(9, 0, "a", generation),
    ]

    done, past_the_end, nowhere = await groups.commit(READERS, asked)

    assert done == GroupOffset(0, 2)
    assert isinstance(past_the_end, OffsetOutOfRange)
    assert isinstance(nowhere, ShardNotFound)


async def test_commit_never_moves_back(storage, groups):
    await fill(storage)
    generation = (await groups.join(READERS, member_id="a")).generation
    await groups.commit(READERS, [Commit(0, 3, "a", generation)])

    [result] = await groups.commit(READERS, [Commit(0, 1, "a", generation)])

    assert result == GroupOffset(0, 3)


async def test_concurrent_commits_are_each_answered(storage, groups):
    await fill(storage, 50)
    generation = (await groups.join(READERS, member_id="a")).generation
    new_commits = [Commit(shard, at, "a", generation) for at in range(1, 51) for shard in range(4)]

    results = await asyncio.gather(
        *(groups.commit(READERS, [new_commit]) for new_commit in new_commits)
    )
    stale = await groups.commit(READERS, [Commit(0, 50, "b", generation)])

    reached = dict.fromkeys(range(4), 0)
    for [result] in results:
        assert isinstance(result, GroupOffset)
        reached[result.shard] = max(reached[result.shard], result.offset)
    assert set(reached.values()) == {50}
    assert isinstance(stale[0], MemberUnknown)


async def test_commit_requires_member_and_generation(storage, groups):
    await fill(storage)

    [result] = await groups.commit(READERS, [Commit(0, 1)])

    assert isinstance(result, ValidationFailed)


async def test_unread_expired_records_are_reported_as_gap(storage, groups, clock):
    await fill(storage)
    await groups.commit(READERS, commits(await groups.fetcher.fetch(READERS, "a", records_max=4)))
    clock.advance(ms=8 * 86_400_000)
    await storage.streams.append_to_shard(CLICKS, 0, [Record(b"new")])
    await storage.streams.trim(CLICKS, 1_000)

    fetched_records = await groups.fetcher.fetch(READERS, "a")

    assert data(fetched_records) == [b"new"]
    assert {(shard, gap.first, gap.next, gap.reason) for shard, gap in fetched_records.gaps} >= {
        (0, 1, 3, "expired")
    }


async def test_paused_group_receives_nothing_and_may_commit(storage, groups):
    await fill(storage)
    first = await groups.fetcher.fetch(READERS, "a", records_max=4)

    await groups.pause(READERS, paused=True)
    paused = await groups.fetcher.fetch(READERS, "a")
    committed = await groups.commit(READERS, commits(first))
    await groups.pause(READERS, paused=False)
    after = await groups.fetcher.fetch(READERS, "a")

    assert (data(paused), paused.positions) == ([], {})
    assert len(paused.membership.assigned) == 4
    assert all(isinstance(result, GroupOffset) for result in committed)
    assert len(data(after)) == 12 - len(data(first))


async def test_put_leaves_group_paused(groups):
    current = await groups.pause(READERS, paused=True)

    put = await groups.put(READERS, msgspec.structs.replace(current.spec, paused=False))

    assert (put.definition.spec.paused, put.definition.version) == (True, current.version)
