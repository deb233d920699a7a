"""A deployment of build 2876b27, kept as its backup, opens and works in this build."""

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.cli.up.data_directory import acquire_lock
from storage.bootstrap import open_storage
from storage.domain.access.audit import AuditFilter
from storage.domain.clock import ManualClock
from storage.domain.names import GroupName, QueueName, StreamName
from storage.domain.queues.message import NewMessage
from storage.embedded.postgres import PostgresServer
from storage.embedded.servers import running
from storage.embedded.valkey import ValkeyServer
from storage.settings import StorageSettings
from tests.cli_commands import millstream

pytestmark = [pytest.mark.one_store, pytest.mark.one_server]

KEPT = Path(__file__).parent / "data" / "deployment_2876b27.tar"
ENDED_AT_MS = 1795610100696
"""The time of the backup: by the system clock, delays and retentions in it have ended."""
AUDITED = [
    "put_namespace",
    "put_queue",
    "put_queue",
    "put_stream",
    "put_consumer_group",
    "put_webhook",
    "create_key",
    "reshard_stream",
]


@pytest.fixture
def settings(monkeypatch) -> Iterator[StorageSettings]:
    """The stores of the restored deployment, running."""
    for name in ("REDIS_URL", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with tempfile.TemporaryDirectory(prefix="ms-") as place:
        monkeypatch.chdir(place)
        data = Path(place) / "data"
        restored = millstream("restore", str(KEPT), "--data", str(data))
        assert restored.code == 0, restored.err
        valkey, postgres = ValkeyServer(data), PostgresServer(data)
        with acquire_lock(data), running(valkey), running(postgres):
            yield StorageSettings(redis_url=valkey.url, database_url=postgres.url)


def test_deployment_of_2876b27_opens_and_works(settings, monkeypatch):
    monkeypatch.setenv("REDIS_URL", settings.redis_url)
    monkeypatch.setenv("DATABASE_URL", settings.database_url)
    migrated = millstream("migrate")
    verified = millstream("audit", "verify", "--local")
    appended = millstream("key", "create", "new", "--role", "viewer", "--local")
    verified_again = millstream("audit", "verify", "--local")

    async def use() -> None:
        async with open_storage(settings, clock=ManualClock(ENDED_AT_MS)) as storage:
            await check_queues(storage)
            await check_stream(storage)
            await check_audit_log(storage)

    asyncio.run(use())
    assert (migrated.code, verified.code) == (0, 0), migrated.err + verified.err
    assert f"Last entry: {len(AUDITED)}:" in verified.out
    assert (appended.code, verified_again.code) == (0, 0), appended.err + verified_again.err
    assert f"Last entry: {len(AUDITED) + 1}:" in verified_again.out


async def check_audit_log(storage):
    """Kept entries have the members that they were hashed with; the new one has both names."""
    *kept, new = await storage.audit_log.page(AuditFilter(), limit=100, oldest_first=True)

    assert [entry.call.operation for entry in kept] == AUDITED
    assert {"protocol" in entry.fields() for entry in kept} == {False}
    assert (new.fields()["protocol"], new.fields()["door"]) == ("cli", "cli")


async def check_queues(storage):
    """The kept queue has its messages, its dead letter and its history, and takes new ones."""
    orders = QueueName("orders")
    before = await storage.queues.stats(orders)
    await storage.queues.send(orders, [NewMessage(b"new")])
    received = await storage.queues.receive(orders, messages_max=10)

    assert (before.ready, before.delayed, before.dead_lettered) == (1, 1, 1)
    assert [message.body for message in received] == [b'{"n":2}', b"new"]
    [reason] = await storage.dead_letters.reasons(orders)
    assert reason.reason == "no such customer"


async def check_stream(storage):
    """The kept group continues after its commit, across the kept reshard."""
    fetched = await storage.groups.fetcher.fetch(GroupName("readers"), "alice", records_max=10)
    extents = await storage.record_reader.shards(StreamName("clicks"))

    assert [record.record.data for read in fetched.reads for record in read.records] == [b"after"]
    assert len([state for state in extents if state.shard.is_open]) == 3
