"""A database outage is reported to callers, and expels no member."""

import pytest

from consumers.maintenance.tasks.groups import rebalance_groups
from storage.bootstrap import open_storage
from storage.domain.errors import MillstreamError, StorageUnavailable
from storage.domain.groups.group import Commit, CommitResult, GroupOffset, GroupSpec
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, StreamName
from storage.domain.streams.stream import StreamSpec
from storage.groups.engine import Groups
from storage.settings import StorageSettings
from tests.integration.fault_proxy import running_database_proxy

CLICKS = StreamName("clicks")
READERS = GroupName("readers")


@pytest.fixture
async def proxied(database_url, short_folder):
    """URL of a proxy in front of the database, and its switches."""
    async with running_database_proxy(database_url, short_folder) as proxied:
        yield proxied


@pytest.fixture
def faults(proxied):
    return proxied[1]


@pytest.fixture
async def storage(redis_url, proxied, clock):
    """Storage that reaches its database through the proxy."""
    settings = StorageSettings(redis_url=redis_url, database_url=proxied[0])
    async with open_storage(settings, clock=clock) as storage:
        await storage.catalog.put_stream(CLICKS, StreamSpec(shards=2))
        await storage.streams.append_to_shard(CLICKS, 0, [Record(b"x")])
        await storage.groups.put(READERS, GroupSpec(stream="clicks"))
        yield storage


async def committed(groups: Groups, commit: Commit) -> CommitResult:
    """Return the results of a commit.

    The whole call is rejected where the stream's definition must be read.
    """
    try:
        [result] = await groups.commit(READERS, [commit])
    except MillstreamError as error:
        return error
    return result


async def test_outage_is_reported_and_expels_no_member(storage, faults, clock):
    groups = storage.groups
    await groups.join(READERS, member_id="a")
    a = await groups.join(READERS, member_id="a")
    await groups.join(READERS, member_id="b")
    commit = Commit(0, 1, "a", a.generation)

    faults.refuse = True
    faults.cut()
    with pytest.raises(StorageUnavailable):
        await groups.join(READERS, member_id="c")
    in_outage = await committed(groups, commit)
    clock.advance(ms=600_000)
    faults.refuse = False
    await rebalance_groups.work(storage)
    _, members, _ = await groups.describe(READERS)
    done = await committed(groups, commit)

    assert {member.member_id for member in members} == {"a", "b"}
    assert in_outage == GroupOffset(0, 1)
    assert done == GroupOffset(0, 1)
