"""Reads and counts that the tests of tiers share."""

from typing import Any

from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.groups.group import Commit
from storage.domain.limits import Limits
from storage.domain.names import GroupName, StreamName
from storage.domain.streams.stream import ReadFrom, ShardRead, StreamSpec
from tests.tiered_stream import CLICKS

READERS = GroupName("readers")
HOUR = limits.HOUR_MS
ALL_HOT = StreamSpec(hot_retention_ms=None)
NOTHING_HOT = StreamSpec(hot_retention_ms=0)
NEVER_AWAY = Limits(outage_ms=10**15)  # the manual clock makes leaps, which are not an outage


async def read(
    engines: Storage, where: ReadFrom, name: StreamName = CLICKS, **most: Any
) -> ShardRead:
    return await engines.record_reader.read_shard(name, 0, where, **most)


async def read_on(engines: Storage, offset: int, records_max: int) -> list[ShardRead]:
    """Yield the reads of a reader that continues to the tip."""
    reads: list[ShardRead] = []
    while not reads or reads[-1].next_offset < reads[-1].tip:
        reads.append(await read(engines, ReadFrom(offset=offset), records_max=records_max))
        offset = reads[-1].next_offset
    return reads


def offsets(read: ShardRead) -> list[int]:
    assert [record.record.data for record in read.records] == [
        b"%d" % record.offset for record in read.records
    ]
    return [record.offset for record in read.records]


async def fetch(engines: Storage, records_max: int) -> ShardRead:
    fetched = await engines.groups.fetcher.fetch(READERS, "alice", records_max=records_max)
    generation = fetched.membership.generation
    read_up_to = [Commit(shard, at, "alice", generation) for shard, at in fetched.positions.items()]
    if read_up_to:
        await engines.groups.commit(READERS, read_up_to)
    [found] = fetched.reads
    return found
