"""Records that expire unread are gaps and lag of a group, also in shards without a commit."""

import random
from collections.abc import Iterator

import pytest

from storage.domain.groups.group import (
    Commit,
    Fetched,
    GroupKind,
    GroupSpec,
    ResetSpec,
    ResetTo,
)
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, StreamName
from storage.domain.streams.start_at import StartAt
from storage.domain.streams.stream import StreamSpec
from storage.groups.engine import Groups

pytestmark = pytest.mark.one_store

EVENTS = StreamName("events")
GROUP = GroupName("auditors")
RING_MIDDLE = 2**127


@pytest.fixture
async def events(storage):
    await storage.catalog.put_stream(EVENTS, StreamSpec(shards=1))
    return storage


async def append(storage, shard: int, count: int) -> None:
    for number in range(count):  # one entry each, so that each can be truncated
        await storage.streams.append_to_shard(EVENTS, shard, [Record(b"%d" % number)])


async def read_and_commit(groups: Groups, member: str) -> Fetched:
    fetched = await groups.fetcher.fetch(GROUP, member)
    generation = fetched.membership.generation
    positions = fetched.positions.items()
    if positions:
        await groups.commit(
            GROUP, [Commit(shard, at, member, generation) for shard, at in positions]
        )
    return fetched


@pytest.mark.parametrize("kind", GroupKind)
@pytest.mark.parametrize(
    "start", [{}, {"start": StartAt.LATEST}, {"start": StartAt.TIME, "start_time_ms": 0}], ids=str
)
async def test_unread_records_of_children_are_gap_and_lag(events, start, kind):
    """A group read the parent; four records of each child expired before it read them."""
    groups, member = events.groups, "a" if kind is GroupKind.ORDERED else ""
    await groups.put(GROUP, GroupSpec(stream=EVENTS.name, kind=kind, **start))
    await append(events, 0, 1)
    await read_and_commit(groups, member)
    await events.streams.resharder.split(EVENTS, 0, RING_MIDDLE)
    for child in (1, 2):
        await append(events, child, 10)
        await events.streams.truncate(EVENTS, child, 4)

    lag = {shard.shard: shard for shard in await groups.lags.by_shard(GROUP)}
    fetched = await groups.fetcher.fetch(GROUP, member)

    assert [(lag[child].expired, lag[child].records) for child in (1, 2)] == [(4, 6), (4, 6)]
    assert [(shard, gap.first, gap.next) for shard, gap in fetched.gaps] == [(1, 0, 4), (2, 0, 4)]


@pytest.mark.parametrize("start", [{}, {"start": StartAt.TIME, "start_time_ms": 0}], ids=str)
@pytest.mark.parametrize("call", ["fetch", "join"])
async def test_start_is_stored_at_first_read(events, start, call):
    """Records that expired before a group's first read are no loss; later ones are."""
    groups = events.groups
    await groups.put(GROUP, GroupSpec(stream=EVENTS.name, **start))
    await append(events, 0, 10)
    await events.streams.truncate(EVENTS, 0, 2)

    if call == "fetch":
        first = (await groups.fetcher.fetch(GROUP, "a")).membership
    else:
        first = await groups.join(GROUP, member_id="a")
    await events.streams.truncate(EVENTS, 0, 5)
    [lag] = await groups.lags.by_shard(GROUP)
    fetched = await groups.fetcher.fetch(GROUP, "a")

    assert [(place.committed, place.position) for place in first.assigned] == [(None, 2)]
    assert (lag.committed, lag.position, lag.expired, lag.records) == (None, 2, 3, 5)
    assert [(gap.first, gap.next) for _, gap in fetched.gaps] == [(2, 5)]


async def test_bookmark_older_than_children_counts_their_losses(events):
    groups = events.groups
    await groups.put(GROUP, GroupSpec(stream=EVENTS.name))
    await append(events, 0, 1)
    await read_and_commit(groups, "a")
    await groups.positions.save_bookmark(GROUP, "before")
    await events.streams.resharder.split(EVENTS, 0, RING_MIDDLE)
    await append(events, 1, 10)
    await events.streams.truncate(EVENTS, 1, 4)

    changes = await groups.positions.reset(GROUP, ResetSpec(to=ResetTo.BOOKMARK, bookmark="before"))

    assert [(change.after, change.expired) for change in changes] == [(1, 0), (0, 4), (0, 0)]


@pytest.mark.parametrize("seed", range(6))
async def test_every_offset_is_delivered_or_reported_as_gap(events, seed):
    """Whatever expires and is resharded in the meantime: no offset is missing silently (G3)."""
    chance, groups, streams = random.Random(seed), events.groups, events.streams
    reader = events.record_reader
    await groups.put(GROUP, GroupSpec(stream=EVENTS.name))
    await append(events, 0, 3)
    await groups.fetcher.fetch(GROUP, "a")
    seen: set[tuple[int, int]] = set()
    for _ in range(12):
        shards = await reader.shards(EVENTS)
        for state in shards:
            if state.shard.is_open:
                await append(events, state.shard.index, chance.randrange(4))
            if chance.random() < 0.3:
                await streams.truncate(EVENTS, state.shard.index, min(state.start + 2, state.next))
        if chance.random() < 0.3:
            state = chance.choice([one for one in shards if one.shard.is_open])
            middle = (state.shard.first_hash_key + state.shard.last_hash_key) // 2 + 1
            await streams.resharder.split(EVENTS, state.shard.index, middle)
        if chance.random() < 0.5:
            seen.update(offsets_of(await read_and_commit(groups, "a")))
    for _ in range(20):
        seen.update(offsets_of(await read_and_commit(groups, "a")))

    states = await reader.shards(EVENTS)
    assert {(one.shard.index, at) for one in states for at in range(one.next)} == seen


def offsets_of(fetched: Fetched) -> Iterator[tuple[int, int]]:
    for read in fetched.reads:
        yield from ((read.shard, record.offset) for record in read.records)
        if read.gap is not None:
            yield from ((read.shard, at) for at in range(read.gap.first, read.gap.next))
