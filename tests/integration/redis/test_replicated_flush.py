"""Flushes to a replica set: what is acknowledged, refused, held back and shown."""

import asyncio
import secrets
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager

import msgspec
import pytest

from storage.domain.clock import SERVER_TIME
from storage.domain.errors import NotEnoughReplicas, OutcomeUnknown, StorageUnavailable
from storage.domain.limits import Limits
from storage.domain.log.address import LogAddress
from storage.domain.log.record_batch import Record
from storage.domain.names import LogId
from storage.domain.replication.acknowledgement import acknowledged_by_primary
from storage.domain.replication.replica_set import Phase, ReplicaSet
from storage.hot_store.log_store import AppendPart, LogOpening, ReadRequest
from storage.log.replica_set_epoch import ReplicaSetEpoch
from storage.redis.cluster_store import RedisServers
from storage.redis.discovery import backup_url, discover_replica_set
from storage.redis.keys import STORE_KEY
from storage.redis.streams.logs import RedisLogStore
from storage.redis.transport.pipeline import Pipeline
from storage.redis.transport.primary import ReplicaSetNodes
from tests.replica_sets import Store, follow, running_stores, url_of

pytestmark = pytest.mark.one_store
LIMITS = Limits(replicas_confirm_ms_max=200, hold_back_ms=300, write_workers=1)
READY_S_MAX = 20.0
ALL = ReadRequest("offset", 0, 100, 1 << 20)


class Deployment:
    """The stores, the row that a controller would write, and this process's view of both."""

    def __init__(self, members: Sequence[Store]) -> None:
        self.members = members
        self.log = LogAddress("default", LogId(secrets.token_hex(8)))
        self.row = ReplicaSet(
            members=tuple(member.address for member in members),
            primary=members[0].address,
            term=1,
            epoch=1,
            phase=Phase.NORMAL,
            min_insync_replicas=2,
        )
        nodes = self.nodes = ReplicaSetNodes(url_of(members))
        self.epoch = ReplicaSetEpoch(nodes, RedisServers(nodes), self.read)
        self.pipeline = Pipeline(nodes, LIMITS, self.epoch.check)
        self.logs = RedisLogStore(self.pipeline, LIMITS)

    async def read(self) -> ReplicaSet:
        return self.row

    def announce(self, **changes: object) -> None:
        """Change the row, as a controller does, which notifies."""
        self.row = msgspec.structs.replace(self.row, **changes)
        self.epoch.changed()

    async def append(self, text: str) -> int:
        part = AppendPart([Record(text.encode())])
        appended = self.logs.append(
            self.log, part, store_epoch=self.epoch.current, indexed=False, now=SERVER_TIME
        )
        return (await appended).offset

    async def append_when_ready(self, text: str) -> int:
        """Append as soon as the replicas, which were stopped, answer again."""
        async with asyncio.timeout(READY_S_MAX):
            while True:
                try:
                    return await self.append(text)
                except StorageUnavailable:
                    continue

    async def append_unless_unknown(self, text: str) -> int:
        """Append, again if the outcome is unknown."""
        try:
            return await self.append(text)
        except OutcomeUnknown:
            return await self.append(text)

    async def texts(self) -> list[bytes]:
        return [one.record.data for one in (await self.logs.read(self.log, ALL)).records]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Store]]:
    with running_stores(tmp_path_factory.mktemp("set"), 3) as members:
        yield members


@pytest.fixture
async def deployment(servers: list[Store]) -> AsyncIterator[Deployment]:
    follow(servers[0], servers[1:], epoch=1)
    deployment = Deployment(servers)
    await deployment.logs.create(deployment.log, LogOpening(0, 1_000, 1, 0))
    yield deployment
    await deployment.pipeline.close()


@contextmanager
def stopped(members: Sequence[Store]) -> Iterator[None]:
    """Stop processes, as a machine that hangs."""
    for member in members:
        member.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for member in members:
            member.signal(signal.SIGCONT)


async def test_acknowledged_write_is_on_replica(deployment):
    await deployment.append("one")

    with deployment.members[0].client() as primary:
        position = primary.hget(STORE_KEY, "position")
    with deployment.members[1].client() as one, deployment.members[2].client() as other:
        assert position in (one.hget(STORE_KEY, "position"), other.hget(STORE_KEY, "position"))


async def test_confirmation_by_replicas_is_timed(deployment):
    await deployment.append("one")
    confirmed = deployment.pipeline.confirmations.take()
    with acknowledged_by_primary():
        await deployment.append("two")

    assert sum(confirmed.buckets) == 1 + 1  # the log's creation, too
    assert confirmed.total_seconds > 0
    assert sum(deployment.pipeline.confirmations.take().buckets) == 0


async def test_write_goes_on_while_one_replica_hangs(deployment):
    with stopped(deployment.members[2:]):
        assert await deployment.append("one") == 0
        assert await deployment.texts() == [b"one"]


async def test_write_without_replicas_is_unknown_then_refused(deployment):
    with stopped(deployment.members[1:]):
        deployment.pipeline.confirmations.take()
        with pytest.raises(OutcomeUnknown):
            await deployment.append("one")
        with pytest.raises(NotEnoughReplicas):
            await deployment.append("two")
        assert deployment.pipeline.errors["unconfirmed"] == 1
        assert sum(deployment.pipeline.confirmations.take().buckets) == 0

    assert await deployment.append_when_ready("three") == 1
    assert await deployment.texts() == [b"one", b"three"]  # the unknown one took effect


async def test_read_shows_nothing_that_no_replica_has(deployment):
    await deployment.append("one")
    with stopped(deployment.members[1:]):
        with pytest.raises(OutcomeUnknown):
            await deployment.append("two")
        with pytest.raises(StorageUnavailable):
            await deployment.texts()


async def test_write_is_unknown_when_epoch_has_changed(deployment):
    """WAITAOF on a connection that outlives a demotion and a promotion counts another history."""
    await deployment.append("one")
    with deployment.members[0].client() as primary:
        primary.hset(STORE_KEY, "epoch", 2)

    with pytest.raises(OutcomeUnknown):
        await deployment.append("two")


async def test_write_needs_fewer_replicas_once_row_says_so(deployment):
    """A count is lowered while a store is lost, in the same epoch; a higher one has a new epoch."""
    deployment.announce(min_insync_replicas=3)
    assert await deployment.append("one") == 0
    with stopped(deployment.members[2:]):
        with pytest.raises(StorageUnavailable):
            await deployment.append_unless_unknown("two")
        deployment.announce(min_insync_replicas=2)

        assert await deployment.append_when_ready("three") > 0


async def test_calls_are_held_back_over_switch_of_primary(deployment):
    await deployment.append("one")
    deployment.announce(phase=Phase.SWITCH)
    held = asyncio.create_task(deployment.append("two"))
    await asyncio.sleep(0.05)
    assert not held.done()

    follow(deployment.members[1], [deployment.members[0], deployment.members[2]], epoch=1)
    deployment.announce(phase=Phase.NORMAL, primary=deployment.members[1].address)

    assert await held == 1
    assert await deployment.texts() == [b"one", b"two"]


async def test_demoted_primary_refuses_and_call_goes_to_next(deployment):
    """The process heard nothing of the switch: its primary refuses, and it reads the row."""
    await deployment.append("one")
    old, new, other = deployment.members
    follow(new, [old, other], epoch=1)
    deployment.row = msgspec.structs.replace(deployment.row, primary=new.address)

    assert await deployment.append("two") == 1


async def test_call_waits_in_vain_for_primary(deployment):
    deployment.announce(phase=Phase.FENCE)

    with pytest.raises(StorageUnavailable):
        await deployment.append("one")


async def test_deletion_is_acknowledged_without_free_memory(deployment):
    """The position is part of each transaction, and must not be what fails it."""
    await deployment.append("one")
    with deployment.members[0].client() as primary:
        primary.set("chunk", "sample")
        primary.config_set("maxmemory", 1)
        try:
            deleted = await deployment.pipeline.write("delete_series", [b"chunk"])
        finally:
            primary.config_set("maxmemory", 0)

    assert deleted == 1


async def test_primary_is_discovered_by_highest_epoch(deployment):
    """An old primary that was cut off still believes itself one."""
    old, new, _ = deployment.members
    with new.client() as client:
        client.replicaof("NO", "ONE")
        client.hset(STORE_KEY, "epoch", 2)

    found = await asyncio.to_thread(discover_replica_set, url_of(deployment.members))

    assert found.primary == new.address
    assert (found.epoch, found.min_insync_replicas) == (2, 2)
    with old.client() as client:
        assert client.role()[0] == b"master"


async def test_primary_acknowledges_alone_where_call_asks_for_it(deployment):
    await deployment.append("one")
    with stopped(deployment.members[1:]):
        with acknowledged_by_primary():
            assert await deployment.append("two") == 1
            assert await deployment.pipeline.write("delete_series", [b"chunk"]) == 0
        with pytest.raises(OutcomeUnknown):
            await deployment.append("three")

    assert await deployment.texts() == [b"one", b"two", b"three"]


async def test_backup_is_taken_from_replica_that_has_everything(deployment):
    await deployment.append("one")
    url = url_of(deployment.members)
    primary = deployment.members[0].address
    assert primary not in await asyncio.to_thread(backup_url, url)

    with stopped(deployment.members[1:]):
        assert primary in await asyncio.to_thread(backup_url, url)


async def test_catalog_version_is_raised_once_replica_has_it(deployment):
    """A fail-over that lost it would let a process without Postgres trust a revoked key."""
    await deployment.append("one")
    servers = RedisServers(deployment.nodes)
    assert await servers.raise_catalog_version(7) == 7

    with stopped(deployment.members[1:]), pytest.raises(NotEnoughReplicas):
        await servers.raise_catalog_version(8)
