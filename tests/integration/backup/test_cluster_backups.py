"""Backups of a Redis Cluster: one moment of all primaries, restored into stores of any number."""

import asyncio
import errno
import threading
from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from random import Random

import pytest

from storage.backup import backup, restore
from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.backup_manifest import BackupError, StoreInUse
from storage.domain.clock import SystemClock
from storage.domain.names import QueueName
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.queue import DeadLetterTarget, QueueSpec
from storage.embedded.valkey import running_valkey
from storage.redis.keys import LAYOUT
from storage.redis.slot_map import SlotMap, is_migrating, open_client, read_slot_map
from storage.redis.snapshot import SnapshotLine
from storage.redis.transport.topology import hash_tag_for
from storage.settings import StorageSettings
from tests.clusters import MASTERS, Masters, running_masters
from tests.conditions import wait_until
from tests.databases import fresh_database
from tests.integration.queues.test_moves import until_over

pytestmark = pytest.mark.one_store

VERSION = "0.1.0"
PAIRS = [(QueueName(f"work-{nth}"), QueueName(f"dead-{nth}")) for nth in range(10)]
MESSAGES = 10
ORDERS = QueueName("orders")
TRANSFERS_WHILE_FORKING_S = 0.3
"""Time that transfers get between the forks of two primaries; all of it passes, as they must not use it."""


@pytest.fixture
def masters(valkey_masters):
    valkey_masters.empty()
    return valkey_masters


@pytest.fixture
def source(masters, database_url) -> StorageSettings:
    return StorageSettings(redis_url=masters.url, database_url=database_url)


@contextmanager
def empty_store(folder: Path, masters: int) -> Iterator[str]:
    """Run a store of so many masters, and yield its URL."""
    if masters == 1:
        with running_valkey(folder) as url:
            yield url
        return
    with running_masters(folder, masters, has_replicas=False) as cluster:
        yield cluster.url


@contextmanager
def empty_stores(folder, postgres_server_url, masters) -> Iterator[StorageSettings]:
    with (
        fresh_database(postgres_server_url, "template1") as database_url,
        empty_store(Path(folder), masters) as redis_url,
    ):
        yield StorageSettings(redis_url=redis_url, database_url=database_url)


async def backed_up(settings, folder):
    return await asyncio.to_thread(backup.backup, settings, folder, SystemClock(), VERSION)


async def restored(settings, folder):
    return await asyncio.to_thread(restore.restore, settings, folder, "bundled")


class Transfers:
    """Messages that go round: dead-lettered from one slot to another, and moved back."""

    def __init__(self, storage):
        self._storage = storage
        self._all_moved = threading.Event()
        self._to_move = set(PAIRS)

    def wait(self, most_s):
        """Return whether each pair transfers something within this time."""
        self._to_move = set(PAIRS)
        self._all_moved.clear()
        return self._all_moved.wait(most_s)

    async def send(self):
        """Create the queues and send all messages; returns their bodies."""
        bodies = []
        for work, dead in PAIRS:
            await self._storage.catalog.put_queue(dead, QueueSpec())
            spec = QueueSpec(dead_letters=DeadLetterTarget(dead.name, 1))
            await self._storage.catalog.put_queue(work, spec)
            sent = [b"%s %d" % (work.name.encode(), nth) for nth in range(MESSAGES)]
            await self._storage.queues.send(work, [NewMessage(body) for body in sent])
            bodies += sent
        return bodies

    def _moved(self, pair):
        self._to_move.discard(pair)
        if not self._to_move:
            self._all_moved.set()

    async def go_round(self, work, dead):
        queues = self._storage.queues
        while True:
            messages = await queues.receive(work, messages_max=MESSAGES)
            nacks = [Settlement(one.receipt_handle, SettleAction.NACK) for one in messages]
            if nacks:
                await queues.settle(work, nacks)
            await queues.receive(work, messages_max=MESSAGES)  # each for the second time
            self._moved((work, dead))
            await until_over(self._storage, await self._storage.moves.start(dead))
            self._moved((work, dead))


@asynccontextmanager
async def transferring(storage):
    """Run transfers for the duration of the block; yield them and the bodies of all messages."""
    transfers = Transfers(storage)
    bodies = await transfers.send()
    tasks = [asyncio.create_task(transfers.go_round(*pair)) for pair in PAIRS]
    try:
        yield transfers, bodies
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


async def every_body(storage):
    """Complete all transfers, and return the bodies of all messages, as often as they are there."""
    names = [name for pair in PAIRS for name in pair]
    for name in names:
        while (await storage.queues.stats(name)).moving:
            await storage.queues.sweep(name)
    bodies = []
    for name in names:
        after = -1
        while after is not None:
            page, after = await storage.inspector.browse(name, after_offset=after)
            bodies += [message.body for message in page]
    return sorted(bodies)


@pytest.mark.parametrize("number", [1, 2])
async def test_message_is_restored_once_when_moved_during_backup(
    source, short_folder, postgres_server_url, tmp_path, monkeypatch, number
):
    """Taken one after the other, the copies of two primaries lack a message or have it twice."""
    async with open_storage(source) as storage, transferring(storage) as (transfers, bodies):
        fork_with_transfers_between(transfers, monkeypatch)
        manifest = await backed_up(source, tmp_path / "backup")
        resumed = await asyncio.to_thread(transfers.wait, 20)

    with empty_stores(short_folder, postgres_server_url, number) as target:
        await restored(target, tmp_path / "backup")
        async with open_storage(target) as storage:
            assert await every_body(storage) == sorted(bodies)

    assert resumed
    assert len(manifest.snapshots) == MASTERS


def fork_with_transfers_between(transfers, monkeypatch):
    """Let transfers happen, if they can, after each primary was asked for its snapshot."""
    request = SnapshotLine.request

    def requested(line):
        request(line)
        transfers.wait(TRANSFERS_WHILE_FORKING_S)

    monkeypatch.setattr(SnapshotLine, "request", requested)


async def test_backup_of_one_store_is_restored_into_cluster(
    redis_url, database_url, short_folder, postgres_server_url, tmp_path
):
    one = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with open_storage(one) as storage:
        bodies = await Transfers(storage).send()
    await backed_up(one, tmp_path / "backup")

    with empty_stores(short_folder, postgres_server_url, 2) as target:
        await restored(target, tmp_path / "backup")
        async with open_storage(target) as storage:
            restored_bodies = await every_body(storage)
            readiness = await storage.health.check()
        keys = [keys_at(primary.url) for primary in slots_of(target.redis_url).primaries]

    assert restored_bodies == sorted(bodies)
    assert readiness["redis"] == "ok"
    assert all(any(b"}:log" in key for key in of_one) for of_one in keys)


def slots_of(url) -> SlotMap:
    with open_client(url) as client:
        return read_slot_map(client, url)


def keys_at(url) -> list[bytes]:
    with open_client(url) as client:
        return list(client.scan_iter())


async def test_restore_is_rejected_when_any_primary_has_a_key(
    source, masters, short_folder, postgres_server_url, tmp_path
):
    async with open_storage(source) as storage:
        await storage.catalog.put_queue(ORDERS, QueueSpec())
    await backed_up(source, tmp_path / "backup")

    with fresh_database(postgres_server_url, "template1") as database_url:
        target = source.model_copy(update={"database_url": database_url})
        for nth in range(MASTERS):
            masters.empty()
            tag = next(tag for tag in range(100) if slot_owner(masters, tag) == nth)
            with masters.client() as client:
                client.set(f"ms:default:{{{tag}}}:log", "x")
            with pytest.raises(StoreInUse, match="the store is not empty"):
                await restored(target, tmp_path / "backup")

            keys = [key for one in range(MASTERS) for key in keys_at(masters.nodes[one].url)]
            assert keys == [f"ms:default:{{{tag}}}:log".encode()]


def slot_owner(masters: Masters, tag: int) -> int:
    url = slots_of(masters.url).url_of(b"{%d}" % tag)
    return [node.url for node in masters.nodes].index(url)


async def test_unfinished_restore_marks_every_primary(
    source, masters, short_folder, postgres_server_url, tmp_path, monkeypatch
):
    async with open_storage(source) as storage:
        await storage.catalog.put_queue(ORDERS, QueueSpec())
    await backed_up(source, tmp_path / "backup")
    masters.empty()

    with fresh_database(postgres_server_url, "template1") as database_url:
        target = source.model_copy(update={"database_url": database_url})
        with monkeypatch.context() as broken:
            broken.setattr("storage.postgres.dump.finish", interrupt)
            with pytest.raises(KeyboardInterrupt):
                restore.restore(target, tmp_path / "backup", "bundled")
        marks = marks_of(masters)
        with pytest.raises(BackupError, match="interrupted"):
            await backed_up(target, tmp_path / "of half")
    masters.empty()
    with fresh_database(postgres_server_url, "template1") as database_url:
        target = source.model_copy(update={"database_url": database_url})
        await restored(target, tmp_path / "backup")

    assert marks == [b"restoring"] * MASTERS
    assert marks_of(masters) == [LAYOUT.encode()] * MASTERS


def interrupt(*_):
    raise KeyboardInterrupt


def marks_of(masters: Masters) -> list[bytes]:
    """Return the value of each master's own key of the layout."""
    marks = []
    for nth in range(MASTERS):
        with masters.direct(nth) as client:
            names = [name for name in client.scan_iter() if name.endswith(b"version")]
            marks += [client.get(name) for name in names]
    return marks


def failing_backup(settings, folder: Path) -> str:
    """Return why a backup fails, after checking that it left nothing and that writes go on."""
    with pytest.raises(BackupError) as failure:
        backup.backup(settings, folder / "backup", SystemClock(), VERSION)
    assert list(folder.iterdir()) == []
    for primary in slots_of(settings.redis_url).primaries:
        with open_client(primary.url) as client:
            client.execute_command("PUBLISH", "nobody", "writes go on")  # it waits in a pause
            assert client.config_get("repl-diskless-sync-delay") == {
                "repl-diskless-sync-delay": "7"
            }
    return str(failure.value)


@pytest.fixture
def slow_to_fork(masters) -> Iterator[Masters]:
    """A cluster whose servers wait for more replicas before they fork, as by default."""
    set_everywhere(masters, "7")
    yield masters
    set_everywhere(masters, "0")


def set_everywhere(masters, delay):
    for nth in range(len(masters.nodes)):
        with masters.direct(nth) as client:
            client.config_set("repl-diskless-sync-delay", delay)


def test_backup_fails_when_primaries_do_not_fork_in_time(
    source, slow_to_fork, tmp_path, monkeypatch
):
    monkeypatch.setattr(limits, "CLUSTER_PAUSE_MS_MAX", 1)

    assert "did not all fork within" in failing_backup(source, tmp_path)


@pytest.mark.parametrize("slot", [0, 1])  # the first has a key that the backup reads
def test_backup_fails_while_slots_are_being_moved(source, slow_to_fork, tmp_path, slot):
    with slow_to_fork.direct(0) as owner, slow_to_fork.direct(1) as other:
        owner.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", other.cluster("MYID"))
        try:
            assert "slots of the cluster are being moved" in failing_backup(source, tmp_path)
        finally:
            owner.execute_command("CLUSTER", "SETSLOT", slot, "STABLE")


def test_backup_fails_when_primary_closes_its_connection(
    source, slow_to_fork, tmp_path, monkeypatch
):
    pieces = SnapshotLine.pieces

    def interrupted(line):
        with slow_to_fork.direct(1) as client:
            client.execute_command("CLIENT", "KILL", "TYPE", "replica")
        return pieces(line)

    with slow_to_fork.direct(1) as client:
        client.set(
            "{1}:large", Random(1).randbytes(64 << 20)
        )  # more than the buffers between them hold
    monkeypatch.setattr(SnapshotLine, "pieces", interrupted)

    assert "closed the connection" in failing_backup(source, tmp_path)


def test_backup_fails_with_its_reason_when_disk_is_full(
    source, slow_to_fork, tmp_path, monkeypatch
):
    """A full disk was reported as an unreachable store."""

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)

    assert "cannot write" in failing_backup(source, tmp_path)


def test_backup_fails_when_primary_was_replaced_after_it_began(
    short_folder, database_url, tmp_path, monkeypatch
):
    with running_masters(Path(short_folder), 2) as cluster:
        set_everywhere(cluster, "7")
        settings = StorageSettings(redis_url=cluster.url, database_url=database_url)
        request = SnapshotLine.request

        def replaced(line):
            request(line)
            take_over(cluster, 2)
            monkeypatch.setattr(SnapshotLine, "request", request)

        monkeypatch.setattr(SnapshotLine, "request", replaced)
        reason = failing_backup(settings, tmp_path)
        backup.backup(settings, tmp_path / "backup", SystemClock(), VERSION)

    assert "a primary of the cluster was replaced" in reason


def take_over(cluster: Masters, replica: int) -> None:
    """Promote a replica, and wait until its primary knows."""
    with cluster.direct(replica) as client, cluster.direct(0) as before:
        client.execute_command("CLUSTER", "FAILOVER", "TAKEOVER")
        wait_until(lambda: before.info("replication")["role"] == "slave")


def test_atomic_slot_migration_is_recognized(masters):
    with masters.direct(0) as owner, masters.direct(1) as other:
        before = slots_of(masters.url)
        owner.config_set("rdb-key-save-delay", 1_000_000)
        owner.set(f"{{{hash_tag_for(0)}}}", "x")
        migrate_first_slot(owner, other)
        wait_until(lambda: is_migrating(owner) and is_migrating(other))
        wait_until(lambda: not is_migrating(owner) and not is_migrating(other))
        owner.config_set("rdb-key-save-delay", 0)
        migrate_first_slot(other, owner)
        wait_until(lambda: all(slots_of(node.url) == before for node in masters.nodes))


def migrate_first_slot(owner, other):
    owner.execute_command(
        "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", 0, 0, "NODE", other.cluster("MYID")
    )
