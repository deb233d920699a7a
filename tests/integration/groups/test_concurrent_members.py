"""Members of two processes read while the stream is split and the group is reset."""

import asyncio
import random
from collections import defaultdict

import pytest

from storage.bootstrap import Storage, open_storage
from storage.domain.errors import MemberUnknown, MillstreamError, StaleGeneration
from storage.domain.groups.group import Commit, GroupOffset, GroupSpec, ResetSpec, ResetTo
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, StreamName
from storage.domain.streams.stream import Appended, StreamSpec
from storage.settings import StorageSettings
from tests.conditions import PATIENCE_S

pytestmark = pytest.mark.one_store

CLICKS = StreamName("clicks")
READERS = GroupName("readers")
MEMBERS, RECORDS, BATCH = 8, 600, 20


@pytest.fixture
async def processes(redis_url, database_url):
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with open_storage(settings) as storage, open_storage(settings) as other:
        await storage.catalog.put_stream(CLICKS, StreamSpec(shards=6))
        await storage.groups.put(READERS, GroupSpec(stream="clicks"))
        yield [storage, other]


class ReadLog:
    """Records read, by offset, and by key in the order of commits."""

    def __init__(self) -> None:
        self.read: dict[tuple[int, int], bytes] = {}
        self.done = asyncio.Event()
        self.accepted: dict[tuple[int, int], set[str]] = defaultdict(set)

    async def member(self, storage: Storage, name: str, chance: random.Random) -> None:
        """Read and commit, and sometimes leave or pause."""
        while not self.done.is_set():
            fetched = await storage.groups.fetcher.fetch(READERS, name, records_max=60, wait_ms=50)
            for read in fetched.reads:
                for record in read.records:
                    known = self.read.setdefault((read.shard, record.offset), record.record.data)
                    assert known == record.record.data
            if chance.random() < 0.1:
                await self.leave(storage, name)
            if not fetched.positions:
                continue
            generation = fetched.membership.generation
            commits = [
                Commit(shard, at, name, generation) for shard, at in fetched.positions.items()
            ]
            for result in await storage.groups.commit(READERS, commits):
                if isinstance(result, GroupOffset):
                    self.accepted[result.shard, generation].add(name)
                else:
                    assert isinstance(result, StaleGeneration | MemberUnknown), result

    async def leave(self, storage: Storage, name: str) -> None:
        try:
            await storage.groups.leave(READERS, name)
        except MemberUnknown:
            return


async def write(storage: Storage) -> None:
    for number in range(0, RECORDS, BATCH):
        records = [Record(b"%d" % n, f"key {n % 37}") for n in range(number, number + BATCH)]
        assert all(
            isinstance(one, Appended) for one in await storage.streams.append(CLICKS, records)
        )
        await asyncio.sleep(0)


async def disturb(storage: Storage) -> None:
    await asyncio.sleep(0.3)
    await storage.streams.resharder.set_shard_count(CLICKS, 8)
    await storage.groups.positions.reset(READERS, ResetSpec(to=ResetTo.EARLIEST))
    await asyncio.sleep(0.3)
    await storage.groups.rebalance_all()


async def test_concurrent_members_lose_nothing_and_share_no_generation(processes):
    one, other = processes
    work = ReadLog()
    members = [
        asyncio.create_task(work.member(processes[nth % 2], f"m{nth}", random.Random(nth)))
        for nth in range(MEMBERS)
    ]

    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(write(one), disturb(other))
        while await _behind(one):
            _raise_what_failed(members)
            await asyncio.sleep(0.1)
        work.done.set()
        await asyncio.gather(*members)

    assert sorted(int(data) for data in set(work.read.values())) == list(range(RECORDS))
    assert len(work.read) == RECORDS
    assert all(len(names) == 1 for names in work.accepted.values())  # G1, G2


async def _behind(storage: Storage) -> bool:
    """Return whether records are left that the group has not committed."""
    return any(lag.records for lag in await storage.groups.lags.by_shard(READERS))


def _raise_what_failed(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        if task.done() and (error := task.exception()):
            raise error


async def test_concurrent_heartbeats_and_commits_do_not_deadlock(processes):
    """Rows are locked in one order, so no two statements wait for each other."""
    names = [GroupName(f"g{nth}") for nth in range(20)]
    for name in names:
        await processes[0].groups.put(name, GroupSpec(stream="clicks"))

    async def act(storage: Storage, chance: random.Random) -> None:
        for _ in range(15):
            name, member = chance.choice(names), f"m{chance.randrange(4)}"
            fetched = await storage.groups.fetcher.fetch(name, member)
            generation = fetched.membership.generation
            shards = [place.shard for place in fetched.membership.assigned]
            if shards:
                results = await storage.groups.commit(
                    name, [Commit(shard, 0, member, generation) for shard in shards]
                )
                for result in results:
                    refused = isinstance(result, MillstreamError)
                    assert not refused or isinstance(result, StaleGeneration | MemberUnknown)

    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(act(processes[nth % 2], random.Random(nth)) for nth in range(16)))
