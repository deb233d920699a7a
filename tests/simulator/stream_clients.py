"""Clients of a stream, its group and its replays, at the engines instead of over HTTP."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from storage.bootstrap import Storage
from storage.domain.errors import MillstreamError
from storage.domain.groups.group import Commit, Fetched, GroupSpec
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, StreamName
from storage.domain.streams.idempotence import AppendCounts
from storage.domain.streams.stream import (
    AppendCondition,
    Appended,
    Producer,
    ReadFrom,
    ShardRead,
    Stream,
    StreamSpec,
)
from tests.chaos.drain import EXPIRED
from tests.chaos.history import Gap, Kind, Operation, Outcome, Seen
from tests.chaos.stage import EVENTS, READERS, SESSION_S, SHARDS, SHARDS_MAX, SHARDS_MIN
from tests.chaos.stream_protocol import open_shards
from tests.simulator.world import SimulatedCaller, World

PAUSE_S = 0.2
TARGET = "again"
_STREAM, _GROUP = StreamName(EVENTS), GroupName(READERS)


class StreamClient(SimulatedCaller):
    """Calls of one client of the stream."""

    async def append(self, value: str, key: str) -> Outcome:
        def read(appended: Any) -> dict[str, Any]:
            [result] = appended
            if isinstance(result, MillstreamError):
                return {"error": result.code}
            return {"seen": (_appended(value, result),)}

        record = Record(value.encode(), key)
        done = await self.call(
            Kind.APPEND,
            EVENTS,
            lambda storage: storage.streams.append(_STREAM, [record], idempotency_key=value),
            read,
            values=(value,),
            group=key,
        )
        return done.outcome

    async def produce(self, shard: int, values: tuple[str, ...], sequence: int) -> Operation:
        condition = AppendCondition(producer=Producer(self.name, 0, sequence))
        records = [Record(value.encode()) for value in values]

        def read(appended: Any) -> dict[str, Any]:
            return {"seen": tuple(map(_appended, values, appended))}

        return await self.call(
            Kind.APPEND,
            EVENTS,
            lambda storage: storage.streams.append_to_shard(_STREAM, shard, records, condition),
            read,
            values=values,
        )

    async def shards(self) -> dict[int, tuple[int, ...]]:
        """Return the parents of each shard; empty if unavailable."""

        def read(states: Any) -> dict[str, Any]:
            return {
                "seen": tuple(
                    Seen(shard=one.shard.index, offset=one.next, parents=one.shard.parents)
                    for one in states
                )
            }

        done = await self.call(
            Kind.SHARDS, EVENTS, lambda storage: storage.record_reader.shards(_STREAM), read
        )
        return {seen.shard: seen.parents for seen in done.seen}

    async def read(self, shard: int, offset: int) -> Operation:
        return await self.call(
            Kind.READ,
            EVENTS,
            partial(_read_shard, _STREAM, shard, offset),
            lambda page: _records(shard, page),
            first=offset,
        )

    async def fetch(self, token: "Token | None") -> "tuple[Operation, Token | None]":
        """Read as a member; return the operation and the token of the next read."""
        following: Token | None = None

        def read(fetched: Fetched) -> dict[str, Any]:
            nonlocal following
            following = Token(fetched)
            pages = [_records(page.shard, page) for page in fetched.reads]
            return {
                "seen": tuple(seen for page in pages for seen in page["seen"]),
                "gaps": tuple(gap for page in pages for gap in page["gaps"]),
                "generation": fetched.membership.generation,
                "owns": tuple(place.shard for place in fetched.membership.assigned),
            }

        verb = partial(_fetch, self.name, token)
        done = await self.call(Kind.GROUP_READ, EVENTS, verb, read, group=READERS)
        return done, following

    async def commit(self, read_operation: Operation, token: "Token") -> None:
        commits = token.commits(self.name)
        if not commits:
            return

        def read(results: Any) -> dict[str, Any]:
            done = [
                Seen(shard=commit.shard, offset=result.offset)
                for commit, result in zip(commits, results, strict=True)
                if not isinstance(result, MillstreamError)
            ]
            return {"seen": tuple(done)}

        await self.call(
            Kind.COMMIT,
            EVENTS,
            lambda storage: storage.groups.commit(_GROUP, commits),
            read,
            group=READERS,
            generation=read_operation.generation,
            owns=read_operation.owns,
        )

    async def standing(self) -> Operation:
        """Query the committed offsets of the group."""

        def read(described: Any) -> dict[str, Any]:
            _, _, shards = described
            return {
                "seen": tuple(
                    Seen(shard=index, offset=shard.committed)
                    for index, shard in shards.items()
                    if shard.committed is not None
                )
            }

        return await self.call(
            Kind.STANDING,
            EVENTS,
            lambda storage: storage.groups.describe(_GROUP),
            read,
            group=READERS,
        )


class Token:
    """Generation and positions of a member after a read."""

    def __init__(self, fetched: Fetched) -> None:
        self.generation = fetched.membership.generation
        self.positions = fetched.positions

    def commits(self, member: str) -> list[Commit]:
        return [
            Commit(shard, offset, member, self.generation)
            for shard, offset in self.positions.items()
        ]


async def _fetch(member: str, token: Token | None, storage: Storage) -> Fetched:
    return await storage.groups.fetch(
        _GROUP,
        member,
        positions=token.positions if token else None,
        generation=token.generation if token else 0,
        new_instance=token is None,
        records_max=20,
        wait_ms=500,
    )


async def _read_shard(name: StreamName, shard: int, offset: int, storage: Storage) -> ShardRead:
    return await storage.record_reader.read_shard(name, shard, ReadFrom(offset=offset))


async def _set_shard_count(name: StreamName, count: int, storage: Storage) -> Stream:
    return await storage.streams.set_shard_count(name, count)


async def _finish_reshard(name: StreamName, storage: Storage) -> bool:
    return await storage.streams.finish_reshard(name)


async def _send(
    producer_id: str, sequences: Sequence[int], records: Sequence[Record], storage: Storage
) -> AppendCounts:
    name = StreamName(TARGET)
    return await storage.streams.append_idempotent(name, producer_id, sequences, records)


def _appended(value: str, result: Appended) -> Seen:
    return Seen(value=value, shard=result.shard, offset=result.offset)


def _records(shard: int, page: ShardRead) -> dict[str, Any]:
    gap = page.gap
    return {
        "seen": tuple(
            Seen(value=one.record.data.decode(), shard=shard, offset=one.offset)
            for one in page.records
        ),
        "gaps": () if gap is None else (Gap(shard, gap.first, gap.next, gap.reason),),
        "tier": page.tier.value,
    }


async def create_stream(storage: Storage) -> None:
    """Create the stream, its group and the target of replays."""
    await storage.catalog.put_stream(_STREAM, StreamSpec(shards=SHARDS, archive=False))
    await storage.catalog.put_stream(StreamName(TARGET), StreamSpec(shards=1, archive=False))
    spec = GroupSpec(stream=EVENTS, session_timeout_ms=int(SESSION_S * 1000))
    await storage.groups.put(_GROUP, spec)


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
        await client.attempt(partial(_set_shard_count, _STREAM, count))


async def belong(world: World, name: str) -> None:
    """Read and commit as a member that leaves or lets its session expire.

    It tries to commit what it had read before, which others may own by now: at once, and after its next session.
    """
    client = StreamClient(world, name)
    before: tuple[Operation, Token] | None = None
    while world.goes_on:
        last = await _read_and_commit(client)
        if client.chance.random() < 0.8:
            await client.attempt(lambda storage: storage.groups.leave(_GROUP, name))
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
            await client.attempt(partial(_finish_reshard, StreamName(stream)))


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
            states = await client.insist(lambda storage: storage.record_reader.shards(_STREAM))
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
    for state in await client.insist(lambda storage: storage.record_reader.shards(name)):
        shard = state.shard.index
        page = await client.insist(partial(_read_shard, name, shard, state.start))
        seen += _records(shard, page)["seen"]
    return seen


async def _reshard_target(client: StreamClient) -> None:
    while True:
        await client.pause(0.3)
        count = client.chance.randint(1, 4)
        await client.attempt(partial(_set_shard_count, StreamName(TARGET), count))


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
        sent = await client.attempt(partial(_send, f"replay/{shard}", offsets, records))
        if sent is None:
            await client.pause(PAUSE_S)
        else:
            offset = offsets[-1] + 1


CLIENTS = (append, append, produce, belong, belong, belong, watch, reshard, maintain)
