"""Committed offsets of groups are replicated as records are, and outlive the loss of the primary."""

import asyncio
from collections.abc import AsyncIterator
from time import monotonic

import pytest

from storage.bootstrap import Storage, open_storage
from storage.domain.errors import MillstreamError
from storage.domain.groups.group import Commit, GroupOffset, GroupSpec
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, StreamName
from storage.domain.replication.acknowledgement import acknowledged_by_primary
from storage.domain.streams.stream import StreamSpec
from storage.settings import StorageSettings
from tests.conditions import PATIENCE_S
from tests.integration.replication.conftest import Deployment
from tests.replica_sets import url_of

CLICKS, READERS = StreamName("clicks"), GroupName("readers")


@pytest.fixture
async def storage(
    deployment: Deployment, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Storage]:
    """A process whose copies to Postgres do not hide what the stores have."""
    row = await deployment.begin()
    for store in deployment.stores:
        if store.address == row.primary:
            store.run("DEL", "ms:version")
    settings = StorageSettings(
        redis_url=url_of(deployment.stores[:3]),
        database_url=database_url,
        durability="replicated",
    )
    async with open_storage(settings) as storage:
        await storage.catalog.put_stream(CLICKS, StreamSpec(shards=1))
        await storage.groups.put(READERS, GroupSpec(stream=CLICKS.name))
        monkeypatch.setattr(storage.groups.copier, "add", lambda _: None)
        yield storage


async def repeated(work):
    """Repeat a call until a primary answers."""
    give_up_at = monotonic() + PATIENCE_S
    while True:
        try:
            return await work()
        except MillstreamError:
            assert monotonic() < give_up_at
            await asyncio.sleep(0.05)


async def test_commit_outlives_loss_of_primary(deployment, storage):
    """Also where the change of leases before it was asked for by a call that waits for the primary alone."""
    await storage.streams.append_to_shard(CLICKS, 0, [Record(b"%d" % n) for n in range(5)])
    with acknowledged_by_primary():
        member = await storage.groups.join(READERS, member_id="a")
    done = await storage.groups.commit(READERS, [Commit(0, 3, "a", member.generation)])
    row = await deployment.row()
    deployment.at(row.primary).kill()

    read = await repeated(lambda: storage.groups.fetcher.fetch(READERS, "a"))
    _, _, shards = await storage.groups.describe(READERS)

    assert done == [GroupOffset(0, 3)]
    assert [record.record.data for one in read.reads for record in one.records] == [b"3", b"4"]
    assert shards[0].committed == 3
    assert (await deployment.row()).primary != row.primary
