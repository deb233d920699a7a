"""Definitions and reads that the tests of groups share."""

from storage.domain.groups.group import Commit, Fetched
from storage.domain.limits import Limits
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, StreamName

CLICKS = StreamName("clicks")
READERS = GroupName("readers")
SESSION_MS = 30_000
NEVER_AWAY = Limits(outage_ms=10**15)  # the manual clock makes leaps, which are not an outage


async def fill(storage, count: int = 3) -> None:
    """Append so many records to each shard."""
    for shard in range(4):
        records = [Record(b"%d.%d" % (shard, number)) for number in range(count)]
        await storage.streams.append_to_shard(CLICKS, shard, records)


def data(fetched: Fetched) -> list[bytes]:
    return [record.record.data for read in fetched.reads for record in read.records]


def commits(fetched: Fetched) -> list[Commit]:
    member, generation = fetched.membership.member_id, fetched.membership.generation
    return [Commit(shard, at, member, generation) for shard, at in fetched.positions.items()]


def shards_of(membership) -> list[int]:
    return [place.shard for place in membership.assigned]
