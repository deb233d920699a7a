"""Clients of a stream, its group and its replays, at the engines instead of over HTTP."""

import asyncio
from functools import partial

from storage.bootstrap import Storage
from storage.domain.groups.group import GroupSpec
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.stream import StreamSpec
from tests.chaos.drain import EXPIRED
from tests.chaos.history import Gap, Kind, Operation, Outcome, Seen
from tests.chaos.stage import EVENTS, SESSION_S, SHARDS, SHARDS_MAX, SHARDS_MIN
from tests.chaos.stream_protocol import open_shards
from tests.simulator.stream_protocol import (
    GROUP,
    STREAM,
    TARGET,
    StreamClient,
    Token,
    finish_reshard,
    read_current_shards,
    read_shard,
    records_of,
    send_idempotent,
    set_shard_count,
)
from tests.simulator.world import World

PAUSE_S = 0.2


async def create_stream(storage: Storage) -> None:
    """Create the stream, its group and the target of replays."""
    await storage.catalog.put_stream(STREAM, StreamSpec(shards=SHARDS, archive=False))
    await storage.catalog.put_stream(StreamName(TARGET), StreamSpec(shards=1, archive=False))
    spec = GroupSpec(stream=EVENTS, session_timeout_ms=int(SESSION_S * 1000))
    await storage.groups.put(GROUP, spec)


async def append(world: World, name: str) -> None:
    """Append with idempotency keys, repeating each append until it is accepted."""
    client, number = StreamClient(world, name), 0
    while world.goes_on:
        number += 1
        key = f"{name}-{client.chance.randrange(3)}"
        while await client.append(f"{name}:{number}", key) is not Outcome.OK and world.goes_on:
            await client.pause(PAUSE_S)
        await client.pause(PAUSE_S)


async def produce(world: World, name: str) -> None:
    """Append batches as a producer; continue on a child when the shard closes."""
    client = StreamClient(world, name)
    shard, sequence = client.chance.randrange(SHARDS), 0
    while world.goes_on:
        size = client.chance.randint(1, 4)
        values = tuple(f"{name}:{number}" for number in range(sequence, sequence + size))
        while world.goes_on:
            done = await client.produce(shard, values, sequence)
            if done.outcome is Outcome.OK:
                break
            if done.code == "shard_closed":
                shards = await client.shards()
                children = [one for one, parents in shards.items() if shard in parents]
                shard = min(children, default=shard)
            await client.pause(PAUSE_S)
        sequence += size
        await client.pause(2 * PAUSE_S)


async def watch(world: World, name: str) -> None:
    """Read from random offsets during appends, and query the group's committed offsets."""
    client, tips = StreamClient(world, name), dict[int, int]()
    while world.goes_on:
        for shard in await client.shards():
            read = await client.read(shard, client.chance.randint(0, tips.get(shard, 0)))
            tips[shard] = max([tips.get(shard, 0), *(seen.offset for seen in read.seen)])
        await client.standing()
        await client.pause(3 * PAUSE_S)


async def reshard(world: World, name: str) -> None:
    """Split and merge within bounds, ignoring the answers: readers see the results."""
    client = StreamClient(world, name)
    while world.goes_on:
        await client.pause(2.0)
        shards = open_shards(await client.shards())
        if not shards:
            continue
        count = client.chance.randint(SHARDS_MIN, SHARDS_MAX)
        await client.attempt(partial(set_shard_count, STREAM, count))


async def belong(world: World, name: str) -> None:
    """Read and commit as a member that leaves or lets its session expire.

    It tries to commit what it had read before, which others may own by now: at once, and after its next session.
    """
    client = StreamClient(world, name)
    before: tuple[Operation, Token] | None = None
    while world.goes_on:
        last = await _read_and_commit(client)
        if client.chance.random() < 0.8:
            await client.attempt(lambda storage: storage.groups.leave(GROUP, name))
            await client.pause(1.0)
        else:
            await asyncio.sleep(SESSION_S * 1.5)
        for stale in (before, last):
            if stale is not None:
                await client.commit(*stale)
        before = last or before


async def _read_and_commit(client: StreamClient) -> tuple[Operation, Token] | None:
    """Read and commit for a while; return the last read."""
    token: Token | None = None
    last: tuple[Operation, Token] | None = None
    until = client.world.history.now() + client.chance.uniform(0.5, 3.0)
    while client.world.goes_on and client.world.history.now() < until:
        read, token = await client.fetch(token)
        if token is not None:
            last = read, token
            if read.seen and client.chance.random() < 0.9:
                await client.commit(read, token)
        await client.pause(PAUSE_S)
    return last


async def maintain(world: World, name: str) -> None:
    """Rebalance the group, and finish reshards."""
    client = StreamClient(world, name)
    while world.goes_on:
        await asyncio.sleep(1.0)
        await client.attempt(lambda storage: storage.groups.rebalance_all())
        for stream in (EVENTS, TARGET):
            await client.attempt(partial(finish_reshard, StreamName(stream)))


async def drain(world: World) -> None:
    """Read the stream and its group to their ends, then replay the stream."""
    await replay(world, await read_all(world))


async def read_all(world: World) -> dict[int, int]:
    """Read the stream and its group to their ends; return the ends of the shards."""
    client = StreamClient(world, "drain")
    for number in range(3):
        await client.append(f"drain:{number}", f"drain-{number}")
    ends = dict[int, int]()
    for shard in await client.shards():
        ends[shard] = await _read_to_the_end(client, shard)
    await _read_group_to(client, ends)
    return ends


async def _read_to_the_end(client: StreamClient, shard: int) -> int:
    """Read a shard; return the offset behind its last record, which a gap may follow."""
    offset, end = 0, 0
    while True:
        client.world.waits_for = f"the end of shard {shard}, read from {offset}"
        read = await _page(client, shard, offset)
        end = max([end, *(seen.offset + 1 for seen in read.seen)])
        if _end_of(read, offset) == offset:
            return end
        offset = _end_of(read, offset)


async def _page(client: StreamClient, shard: int, offset: int) -> Operation:
    """Read until the answer is a page, or that the shard begins behind the offset."""
    while True:
        read = await client.read(shard, offset)
        if read.code == EXPIRED:
            states = await client.insist(lambda storage: storage.record_reader.shards(STREAM))
            [start] = [state.start for state in states if state.shard.index == shard]
            return client.note(
                Kind.READ, EVENTS, first=offset, gaps=(Gap(shard, offset, start, "expired"),)
            )
        if read.outcome is Outcome.OK:
            return read
        await client.pause(PAUSE_S)


def _end_of(read: Operation, offset: int) -> int:
    return max([offset, *(seen.offset + 1 for seen in read.seen), *(gap.next for gap in read.gaps)])


async def _read_group_to(client: StreamClient, ends: dict[int, int]) -> None:
    token: Token | None = None
    while True:
        read, token = await client.fetch(token)
        if token is not None:
            await client.commit(read, token)
        await client.attempt(lambda storage: storage.groups.rebalance_all())
        standing = {seen.shard: seen.offset for seen in (await client.standing()).seen}
        if all(standing.get(shard, 0) >= end for shard, end in ends.items()):
            return
        client.world.waits_for = f"the group at {standing} to reach {ends}"


async def replay(world: World, ends: dict[int, int]) -> None:
    """Send every record to another stream, twice at the same time, while that is resharded."""
    client = StreamClient(world, "replay")
    world.waits_for = f"the replay of {ends}"
    invoked = world.history.now()
    resharding = asyncio.create_task(_reshard_target(client))
    async with asyncio.TaskGroup() as senders:
        for attempt in range(2):
            for shard, end in ends.items():
                sender = StreamClient(world, f"replay-{attempt}-{shard}")
                senders.create_task(_send_shard(sender, shard, end))
    resharding.cancel()
    await asyncio.wait([resharding])
    places = [Seen(shard=shard, offset=at) for shard, end in ends.items() for at in (0, end)]
    client.note(Kind.REPLAY, EVENTS, invoked=invoked, seen=tuple(places), target=TARGET)
    client.note(Kind.REPLAYED, TARGET, seen=tuple(await _read_target(client)))


async def _read_target(client: StreamClient) -> list[Seen]:
    name, seen = StreamName(TARGET), list[Seen]()
    for state in await client.insist(partial(read_current_shards, name)):
        shard = state.shard.index
        page = await client.insist(partial(read_shard, name, shard, state.start))
        seen += records_of(shard, page)["seen"]
    return seen


async def _reshard_target(client: StreamClient) -> None:
    while True:
        await client.pause(0.3)
        count = client.chance.randint(1, 4)
        await client.attempt(partial(set_shard_count, StreamName(TARGET), count))


async def _send_shard(client: StreamClient, shard: int, end: int) -> None:
    """Send one shard's records in batches of any size, each until it is accepted."""
    offset = 0
    while offset < end:
        read = await _page(client, shard, offset)
        seen = read.seen[: client.chance.randint(1, 20)]
        if not seen:
            offset = _end_of(read, offset)
            continue
        records = [Record(one.value.encode(), key=one.value) for one in seen]
        offsets = [one.offset for one in seen]
        sent = await client.attempt(partial(send_idempotent, f"replay/{shard}", offsets, records))
        if sent is None:
            await client.pause(PAUSE_S)
        else:
            offset = offsets[-1] + 1


CLIENTS = (append, append, produce, belong, belong, belong, watch, reshard, maintain)
