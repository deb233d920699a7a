"""Operations on a stream, its group and its replays, at the engines."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from storage.bootstrap import Storage
from storage.domain.errors import MillstreamError
from storage.domain.groups.group import Commit, Fetched
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, StreamName
from storage.domain.streams.idempotence import AppendCounts
from storage.domain.streams.stream import (
    AppendCondition,
    Appended,
    Producer,
    ReadFrom,
    ShardRead,
    ShardState,
    Stream,
)
from tests.chaos.history import Gap, Kind, Operation, Outcome, Seen
from tests.chaos.stage import EVENTS, READERS
from tests.simulator.world import SimulatedCaller

TARGET = "again"
STREAM, GROUP = StreamName(EVENTS), GroupName(READERS)


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
            lambda storage: storage.streams.append(STREAM, [record], idempotency_key=value),
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
            lambda storage: storage.streams.append_to_shard(STREAM, shard, records, condition),
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
            Kind.SHARDS, EVENTS, lambda storage: storage.record_reader.shards(STREAM), read
        )
        return {seen.shard: seen.parents for seen in done.seen}

    async def read(self, shard: int, offset: int) -> Operation:
        return await self.call(
            Kind.READ,
            EVENTS,
            partial(read_shard, STREAM, shard, offset),
            lambda page: records_of(shard, page),
            first=offset,
        )

    async def fetch(self, token: "Token | None") -> "tuple[Operation, Token | None]":
        """Read as a member; return the operation and the token of the next read."""
        following: Token | None = None

        def read(fetched: Fetched) -> dict[str, Any]:
            nonlocal following
            following = Token(fetched)
            pages = [records_of(page.shard, page) for page in fetched.reads]
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
            lambda storage: storage.groups.commit(GROUP, commits),
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
            lambda storage: storage.groups.describe(GROUP),
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
    return await storage.groups.fetcher.fetch(
        GROUP,
        member,
        positions=token.positions if token else None,
        generation=token.generation if token else 0,
        new_instance=token is None,
        records_max=20,
        wait_ms=500,
    )


async def read_shard(name: StreamName, shard: int, offset: int, storage: Storage) -> ShardRead:
    """Read a page of a shard."""
    return await storage.record_reader.read_shard(name, shard, ReadFrom(offset=offset))


async def set_shard_count(name: StreamName, count: int, storage: Storage) -> Stream:
    """Split or merge to this number of shards."""
    return await storage.streams.resharder.set_shard_count(name, count)


async def finish_reshard(name: StreamName, storage: Storage) -> bool:
    """Continue a reshard whose process was killed."""
    return await storage.streams.resharder.finish(name)


async def send_idempotent(
    producer_id: str, sequences: Sequence[int], records: Sequence[Record], storage: Storage
) -> AppendCounts:
    """Send records of a replay, each with its sequence number."""
    name = StreamName(TARGET)
    return await storage.streams.append_idempotent(name, producer_id, sequences, records)


async def read_current_shards(name: StreamName, storage: Storage) -> Sequence[ShardState]:
    """Return the shards of a stream, also those that another process has just added."""
    await storage.catalog.fresh_stream(name)
    return await storage.record_reader.shards(name)


def _appended(value: str, result: Appended) -> Seen:
    return Seen(value=value, shard=result.shard, offset=result.offset)


def records_of(shard: int, page: ShardRead) -> dict[str, Any]:
    """Return the fields of a read's operation."""
    gap = page.gap
    return {
        "seen": tuple(
            Seen(value=one.record.data.decode(), shard=shard, offset=one.offset)
            for one in page.records
        ),
        "gaps": () if gap is None else (Gap(shard, gap.first, gap.next, gap.reason),),
        "tier": page.tier.value,
    }
