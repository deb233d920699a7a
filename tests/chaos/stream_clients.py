"""Stream clients: writers, readers, group members and resharding."""

import asyncio
from functools import partial
from random import Random

from tests.chaos.history import Operation, Outcome
from tests.chaos.kinesis_protocol import Kinesis
from tests.chaos.stage import (
    EVENTS,
    PAUSE_S,
    READERS,
    SESSION_S,
    SHARDS,
    SHARDS_MAX,
    SHARDS_MIN,
    Stage,
)
from tests.chaos.stream_protocol import Streams, open_shards

KEYS = 4
WRITES_S = 3 * PAUSE_S
"""Slow enough for the webhook, which posts the records of a shard one by one."""
STAYS_S = (1.5, 6.0)
WATCHED_SHARDS = 4


async def append(stage: Stage, name: str, protocol: Streams, chance: Random) -> None:
    """Append with idempotency keys, to own record keys."""
    number = 0
    while stage.goes_on:
        key = f"{name}-{chance.randrange(KEYS)}"
        await stage.insist(partial(protocol.append, EVENTS, f"{name}:{number}", key))
        number += 1
        await stage.pause(chance, WRITES_S)


async def produce(stage: Stage, name: str, protocol: Streams, chance: Random) -> None:
    """Append batches to a shard as a producer; continue on a child when the shard closes."""
    shard, sequence = chance.randrange(SHARDS), 0
    while stage.goes_on:
        size = chance.randint(1, 5)
        values = tuple(f"{name}:{number}" for number in range(sequence, sequence + size))
        while stage.goes_on:
            done, shard = await protocol.produce(EVENTS, shard, values, sequence)
            if done.outcome is Outcome.OK:
                break
            await asyncio.sleep(5 * PAUSE_S)
        sequence += size
        await stage.pause(chance, WRITES_S)


async def put(stage: Stage, name: str, protocol: Kinesis, chance: Random) -> None:
    """PutRecords, each record once."""
    number = 0
    while stage.goes_on:
        size = chance.randint(1, 10)
        values = tuple(f"{name}:{n}" for n in range(number, number + size))
        keys = tuple(f"{name}-{chance.randrange(KEYS)}" for _ in values)
        await protocol.put(EVENTS, values, keys)
        number += size
        await stage.pause(chance, WRITES_S)


async def get(stage: Stage, name: str, protocol: Kinesis, chance: Random) -> None:
    """GetRecords from the start of each shard; failed iterators are replaced."""
    last: dict[int, tuple[int, str]] = {}
    iterators: dict[int, str] = {}
    ended: set[int] = set()
    while stage.goes_on:
        for shard in await protocol.shards(EVENTS):
            offset, number = last.get(shard, (-1, ""))
            if shard in ended:
                continue
            iterator = iterators.pop(shard, None) or await protocol.iterator(EVENTS, shard, number)
            if iterator is None:
                continue
            first = offset + 1 if number else -1  # wherever the shard begins
            read, result = await protocol.get(EVENTS, shard, iterator, first)
            if read.seen:
                last[shard] = (read.seen[-1].offset, read.seen[-1].number)
            if read.outcome is Outcome.OK:
                if next_ := result.get("NextShardIterator"):
                    iterators[shard] = next_
                else:
                    ended.add(shard)
        await stage.pause(chance, 10 * PAUSE_S)


async def watch(stage: Stage, name: str, protocol: Streams, chance: Random) -> None:
    """Read from random offsets during appends, and query the group's committed offsets."""
    most: dict[int, int] = dict.fromkeys(range(SHARDS), 0)
    while stage.goes_on:
        shards = await protocol.shards(EVENTS)
        for shard in chance.sample([*shards], min(WATCHED_SHARDS, len(shards))):
            read = await protocol.read(EVENTS, shard, chance.randint(0, most.get(shard, 0)))
            most[shard] = max([most.get(shard, 0), *(seen.offset for seen in read.seen)])
        await protocol.standing(EVENTS, READERS)
        await stage.pause(chance, 10 * PAUSE_S)


async def reshard(
    stage: Stage, name: str, protocol: Streams, chance: Random, stream: str = EVENTS
) -> None:
    """Split and merge within bounds, ignoring responses: readers observe the results."""
    while stage.goes_on:
        await stage.pause(chance, stage.reshard_s)
        shards = open_shards(await protocol.shards(stream))
        if not shards or not stage.goes_on:
            continue
        if len(shards) <= SHARDS_MIN or (len(shards) < SHARDS_MAX and chance.random() < 0.5):
            await protocol.reshard(stream, split={"shard": chance.choice(shards)})
        elif chance.random() < 0.8:
            await protocol.merge_some(stream, chance)
        else:
            await protocol.reshard(stream, shards=SHARDS)


async def belong(stage: Stage, name: str, protocol: Streams, chance: Random) -> None:
    """Read and commit as a member that leaves or lets its session expire.

    On return, it tries to commit what it had read before.
    """
    while stage.goes_on:
        last = await _read_and_commit(stage, protocol, chance, chance.uniform(*STAYS_S))
        if chance.random() < 0.7:
            await protocol.leave(READERS)
            await stage.pause(chance, 1.0)
        else:
            await asyncio.sleep(SESSION_S * 1.5)
        if last is not None and stage.goes_on:
            await protocol.commit(*last)
    await protocol.leave(READERS)


async def _read_and_commit(
    stage: Stage, protocol: Streams, chance: Random, seconds: float
) -> tuple[Operation, str] | None:
    """Read and commit for this duration; return the last read, with its token."""
    last: tuple[Operation, str] | None = None
    until = stage.history.now() + seconds
    while stage.goes_on and stage.history.now() < until:
        read, token = await protocol.read_as(EVENTS, READERS)
        if token:
            last = read, token
        if token and read.seen and chance.random() < 0.9:
            await protocol.commit(read, token)
        await stage.pause(chance)
    return last
