"""Who writes to the stream, who reads it, who shares it, and who splits and merges its shards."""

import asyncio
from functools import partial
from random import Random

from tests.chaos.history import Operation, Outcome
from tests.chaos.kinesis_door import Kinesis
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
from tests.chaos.stream_door import Streams, open_shards

KEYS = 4
WRITES_S = 3 * PAUSE_S
"""What posts the stream to a webhook, one record of a shard after another, is to keep up on a quick machine too."""
STAYS_S = (1.5, 6.0)
WATCHED_SHARDS = 4


async def append(stage: Stage, name: str, door: Streams, chance: Random) -> None:
    """With idempotency keys, to keys of its own."""
    number = 0
    while stage.goes_on:
        key = f"{name}-{chance.randrange(KEYS)}"
        await stage.insist(partial(door.append, EVENTS, f"{name}:{number}", key))
        number += 1
        await stage.pause(chance, WRITES_S)


async def produce(stage: Stage, name: str, door: Streams, chance: Random) -> None:
    """Batches on a shard's address, as a producer with sequences; where the shard is closed, on a child's."""
    shard, sequence = chance.randrange(SHARDS), 0
    while stage.goes_on:
        size = chance.randint(1, 5)
        values = tuple(f"{name}:{number}" for number in range(sequence, sequence + size))
        while stage.goes_on:
            done, shard = await door.produce(EVENTS, shard, values, sequence)
            if done.outcome is Outcome.OK:
                break
            await asyncio.sleep(5 * PAUSE_S)
        sequence += size
        await stage.pause(chance, WRITES_S)


async def put(stage: Stage, name: str, door: Kinesis, chance: Random) -> None:
    """PutRecords, each record once."""
    number = 0
    while stage.goes_on:
        size = chance.randint(1, 10)
        values = tuple(f"{name}:{n}" for n in range(number, number + size))
        keys = tuple(f"{name}-{chance.randrange(KEYS)}" for _ in values)
        await door.put(EVENTS, values, keys)
        number += size
        await stage.pause(chance, WRITES_S)


async def get(stage: Stage, name: str, door: Kinesis, chance: Random) -> None:
    """GetRecords from the start of each shard, and on and on: an iterator that fails is replaced."""
    last: dict[int, tuple[int, str]] = {}
    iterators: dict[int, str] = {}
    ended: set[int] = set()
    while stage.goes_on:
        for shard in await door.shards(EVENTS):
            offset, number = last.get(shard, (-1, ""))
            if shard in ended:
                continue
            iterator = iterators.pop(shard, None) or await door.iterator(EVENTS, shard, number)
            if iterator is None:
                continue
            first = offset + 1 if number else -1  # wherever the shard begins
            read, told = await door.get(EVENTS, shard, iterator, first)
            if read.seen:
                last[shard] = (read.seen[-1].offset, read.seen[-1].number)
            if read.outcome is Outcome.OK:
                if next_ := told.get("NextShardIterator"):
                    iterators[shard] = next_
                else:
                    ended.add(shard)
        await stage.pause(chance, 10 * PAUSE_S)


async def watch(stage: Stage, name: str, door: Streams, chance: Random) -> None:
    """Read from random places while records arrive, and ask where the group stands."""
    most: dict[int, int] = dict.fromkeys(range(SHARDS), 0)
    while stage.goes_on:
        shards = await door.shards(EVENTS)
        for shard in chance.sample([*shards], min(WATCHED_SHARDS, len(shards))):
            read = await door.read(EVENTS, shard, chance.randint(0, most.get(shard, 0)))
            most[shard] = max([most.get(shard, 0), *(seen.offset for seen in read.seen)])
        await door.standing(EVENTS, READERS)
        await stage.pause(chance, 10 * PAUSE_S)


async def reshard(stage: Stage, name: str, door: Streams, chance: Random) -> None:
    """Split and merge, within bounds. What it was told does not matter: readers see what came of it."""
    while stage.goes_on:
        await stage.pause(chance, stage.reshard_s)
        shards = open_shards(await door.shards(EVENTS))
        if not shards or not stage.goes_on:
            continue
        if len(shards) <= SHARDS_MIN or (len(shards) < SHARDS_MAX and chance.random() < 0.5):
            await door.reshard(EVENTS, split={"shard": chance.choice(shards)})
        elif chance.random() < 0.8:
            await door.merge_some(EVENTS, chance)
        else:
            await door.reshard(EVENTS, shards=SHARDS)


async def belong(stage: Stage, name: str, door: Streams, chance: Random) -> None:
    """Read and commit as a member that comes and goes: it leaves, or is silent for longer than a session.

    Back again, it tries to commit what it had read before.
    """
    while stage.goes_on:
        last = await _read_and_commit(stage, door, chance, chance.uniform(*STAYS_S))
        if chance.random() < 0.7:
            await door.leave(READERS)
            await stage.pause(chance, 1.0)
        else:
            await asyncio.sleep(SESSION_S * 1.5)
        if last is not None and stage.goes_on:
            await door.commit(*last)
    await door.leave(READERS)


async def _read_and_commit(
    stage: Stage, door: Streams, chance: Random, seconds: float
) -> tuple[Operation, str] | None:
    """For so long; the last read, with its token."""
    last: tuple[Operation, str] | None = None
    until = stage.history.now() + seconds
    while stage.goes_on and stage.history.now() < until:
        read, token = await door.read_as(EVENTS, READERS)
        if token:
            last = read, token
        if token and read.seen and chance.random() < 0.9:
            await door.commit(read, token)
        await stage.pause(chance)
    return last
