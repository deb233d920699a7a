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
from storage.domain.groups.group import Commit, GroupKind, GroupOffset, GroupSpec
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName
from storage.domain.streams.record_filter import Filter
from tests.conditions import PATIENCE_S, eventually
from tests.integration.groups.group_reads import CLICKS, READERS, commits, data, fill, shards_of

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

    assert data(await asyncio.wait_for(waiting, PATIENCE_S)) == [b"new"]


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


# ── Filters ──


async def fill_with_keys(storage, keys: str) -> None:
    """Append a record with each of these keys to shard 0."""
    records = [Record(b"%d" % number, key) for number, key in enumerate(keys)]
    await storage.streams.append_to_shard(CLICKS, 0, records)


async def lag_of(groups, name=READERS) -> list[int]:
    return [lag.records for lag in await groups.lags.by_shard(name)]


async def committed_of(groups, shard: int) -> int:
    committed = {lag.shard: lag.committed for lag in await groups.lags.by_shard(READERS)}
    return committed[shard] or 0


@pytest.mark.parametrize("wait_ms", [0, 50])
async def test_lag_falls_although_nothing_matches(storage, groups, wait_ms):
    await fill(storage)
    nothing = Filter(match={"subject": "order.*"})

    fetched = await groups.fetcher.fetch(READERS, "a", record_filter=nothing, wait_ms=wait_ms)

    assert (data(fetched), fetched.positions) == ([], {})
    assert await lag_of(groups) == [0, 0, 0, 0]


async def test_fetch_passes_over_records_up_to_next_match(storage, groups, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.GROUP_FILTER_RECORDS", 3)
    await fill_with_keys(storage, "........x.x....")
    of_key = Filter(match={"filter": {"key": ["x"]}})

    first = await groups.fetcher.fetch(
        READERS, "a", record_filter=of_key, records_max=1, wait_ms=5_000
    )
    again = await groups.fetcher.fetch(READERS, "a", record_filter=of_key, records_max=1)
    await groups.commit(READERS, commits(again))
    second = await groups.fetcher.fetch(
        READERS, "a", record_filter=of_key, records_max=1, wait_ms=5_000
    )
    await groups.commit(READERS, commits(second))
    await groups.fetcher.fetch(READERS, "a", record_filter=of_key, wait_ms=100)

    assert [data(first), data(again), data(second)] == [[b"8"], [b"8"], [b"10"]]
    assert await lag_of(groups) == [0, 0, 0, 0]


async def test_fetch_ahead_of_commits_commits_nothing(storage, groups):
    await fill_with_keys(storage, "x..x..")
    of_key = Filter(keys=("x",))
    first = await groups.fetcher.fetch(READERS, "a", record_filter=of_key, records_max=1)

    ahead = await groups.fetcher.fetch(
        READERS,
        "a",
        record_filter=Filter(keys=("y",)),
        positions=first.positions,
        generation=first.membership.generation,
    )

    assert ahead.positions == {0: 6}
    assert await lag_of(groups) == [6, 0, 0, 0]


async def test_waiting_fetch_is_woken_by_matching_record_alone(storage, groups):
    waiting = asyncio.create_task(
        groups.fetcher.fetch(READERS, "a", record_filter=Filter(keys=("x",)), wait_ms=10_000)
    )
    await fill_with_keys(storage, ".")
    await eventually(lambda: committed_of(groups, 0), 1)

    await fill_with_keys(storage, "x")

    assert data(await asyncio.wait_for(waiting, PATIENCE_S)) == [b"0"]


async def test_shard_without_match_is_finished_and_its_children_read(storage, groups):
    await fill_with_keys(storage, "....")
    stream = await storage.catalog.stream(CLICKS)
    shard = stream.shard(0)
    middle = (shard.first_hash_key + shard.last_hash_key) // 2
    await storage.streams.resharder.split(CLICKS, 0, middle)
    await storage.streams.append_to_shard(CLICKS, 4, [Record(b"child", "x")])

    fetched = await groups.fetcher.fetch(
        READERS, "a", record_filter=Filter(keys=("x",)), wait_ms=5_000
    )

    assert data(fetched) == [b"child"]
    assert {0}.isdisjoint(shards_of(fetched.membership))


async def test_gap_is_reported_before_it_is_passed_over(storage, groups):
    await fill_with_keys(storage, "x.....")
    await groups.fetcher.fetch(READERS, "a")
    await storage.streams.truncate(CLICKS, 0, 3)
    of_key = Filter(keys=("x",))

    for _ in range(2):  # also after a lost answer
        fetched = await groups.fetcher.fetch(READERS, "a", record_filter=of_key)
        assert [(shard, gap.first, gap.next) for shard, gap in fetched.gaps] == [(0, 0, 3)]

    assert fetched.positions == {0: 6}


async def test_simple_group_passes_over_what_does_not_match(storage, groups):
    offsets = GroupName("offsets")
    await groups.put(offsets, GroupSpec(stream="clicks", kind=GroupKind.SIMPLE))
    await fill(storage)

    await groups.fetcher.fetch(offsets, record_filter=Filter(keys=("x",)))

    assert await lag_of(groups, offsets) == [0, 0, 0, 0]
