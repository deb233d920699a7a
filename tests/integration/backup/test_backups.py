"""Backups of running deployments, restored into empty stores."""

import asyncio
import io
import stat
from collections.abc import Iterator
from contextlib import asynccontextmanager, suppress

import psycopg
import pytest
import redis
from alembic import command
from msgspec.structs import replace

from storage.access.secret_box import new_key
from storage.backup import backup, restore
from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.access.audit import ApiProtocol, AuditedCall, AuditFilter, Chain
from storage.domain.access.credentials import CredentialRequest, Rights
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR, Role
from storage.domain.backup_manifest import (
    MANIFEST,
    SNAPSHOT,
    BackupError,
    RestoreUnfinished,
    StoreInUse,
    Table,
)
from storage.domain.clock import SystemClock
from storage.domain.errors import MillstreamError
from storage.domain.groups.group import Commit, GroupKind, GroupOffset, GroupSpec
from storage.domain.limits import RESTORE_SKIPS_OFFSETS
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, QueueName, SourceName, StreamName, WebhookName
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.queue import QueueSpec
from storage.domain.sources.signatures import sign
from storage.domain.sources.source import SourceSpec, SourceTarget, WebhookProvider
from storage.domain.streams.stream import ReadFrom, StreamSpec
from storage.domain.webhooks import Source, SourceKind, WebhookSpec
from storage.embedded.valkey import running_valkey
from storage.postgres import dump
from storage.postgres.database import open_database
from storage.postgres.migrate import config_of, connected
from storage.postgres.repositories.replica_set import ReplicaSetRows
from storage.postgres.schema_revision import head
from storage.redis.restore import SnapshotStore
from storage.redis.snapshot import snapshot_of
from storage.schema_version import migrate
from storage.settings import StorageSettings
from tests.conditions import PATIENCE_S
from tests.databases import execute as execute_at
from tests.databases import fresh_database
from tests.replica_sets import follow, running_stores, url_of

ORDERS, LATER = QueueName("orders"), QueueName("later")
CLICKS = StreamName("clicks")
READERS = GroupName("readers")
PROVIDER = SourceName("provider")
HOOK = WebhookName("hook")
KEYS = (new_key(),)
VERSION = "0.1.0"


@pytest.fixture
def source(redis_url, database_url) -> StorageSettings:
    return StorageSettings(redis_url=redis_url, database_url=database_url, secret_keys=KEYS)


@pytest.fixture
def target(short_folder, postgres_server_url) -> Iterator[StorageSettings]:
    """Two empty stores."""
    with (
        fresh_database(postgres_server_url, "template1") as database_url,
        running_valkey(short_folder) as redis_url,
    ):
        yield StorageSettings(redis_url=redis_url, database_url=database_url, secret_keys=KEYS)


class Writer:
    """Writes to a queue and a stream in turn, and lists what was acknowledged."""

    def __init__(self, storage):
        self._storage = storage
        self._wrote = asyncio.Event()
        self.sent, self.put = [], []

    async def write(self):
        for number in range(1_000_000):
            body = b"%d" % number
            await self._storage.queues.send(ORDERS, [NewMessage(body)])
            self.sent.append(body)
            [done] = await self._storage.streams.append_to_shard(CLICKS, 0, [Record(body)])
            self.put.append((done.offset, body))
            self._wrote.set()

    async def wrote_more(self, count):
        wanted = len(self.put) + count
        async with asyncio.timeout(PATIENCE_S):
            while len(self.put) < wanted:
                self._wrote.clear()
                await self._wrote.wait()


@asynccontextmanager
async def writing(storage):
    """Run a writer for the duration of the block."""
    writer = Writer(storage)
    task = asyncio.create_task(writer.write())
    try:
        yield writer
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def backed_up(source, folder):
    return await asyncio.to_thread(backup.backup, source, folder, SystemClock(), VERSION)


async def restored(target, folder):
    return await asyncio.to_thread(restore.restore, target, folder, "bundled")


async def received(storage, queue):
    bodies = []
    while messages := await storage.queues.receive(
        queue, messages_max=1_000, visibility_timeout_ms=60_000
    ):
        bodies += [message.body for message in messages]
    return bodies


async def test_acknowledged_writes_are_restored_and_offsets_not_reused(source, target, tmp_path):
    folder = tmp_path / "backup"
    async with open_storage(source) as storage:
        await storage.catalog.put_queue(ORDERS, QueueSpec())
        await storage.catalog.put_stream(CLICKS, StreamSpec())
        async with writing(storage) as writer:
            await writer.wrote_more(50)
            sent, put = list(writer.sent), list(writer.put)
            manifest = await backed_up(source, folder)
            await writer.wrote_more(50)
    await restored(target, folder)

    async with open_storage(target) as storage:
        read = await storage.record_reader.read_shard(CLICKS, 0, ReadFrom(offset=0))
        held = [(record.offset, record.record.data) for record in read.records]
        [after] = await storage.streams.append_to_shard(CLICKS, 0, [Record(b"after")])
        gap = await storage.record_reader.read_shard(CLICKS, 0, ReadFrom(offset=len(held)))
        bodies = await received(storage, ORDERS)

    assert held[: len(put)] == put
    assert held == writer.put[: len(held)]
    assert bodies[: len(sent)] == sent
    assert bodies == writer.sent[: len(bodies)]
    assert after.offset >= RESTORE_SKIPS_OFFSETS > writer.put[-1][0]
    assert gap.gap is not None
    assert (gap.gap.first, gap.gap.next) == (len(held), after.offset)
    assert [record.record.data for record in gap.records] == [b"after"]
    assert manifest.began_at_ms <= manifest.ended_at_ms


async def test_configuration_and_progress_are_restored(source, target, tmp_path):
    async with open_storage(source) as storage:
        token = await create_one_of_each(storage)
    await backed_up(source, tmp_path / "backup")
    await restored(target, tmp_path / "backup")

    async with open_storage(target) as storage:
        [lag] = await storage.groups.lags.by_shard(READERS)
        letters, _ = await storage.dead_letters.browse(ORDERS, messages_max=10)
        stats = await storage.queues.stats(LATER)
        hook = await storage.webhooks.opened(HOOK)
        chain = Chain(whole=True)
        fault = chain.check(
            [audit_log.fields() for audit_log in await storage.audit_log.page(AuditFilter())]
        )
        [again] = await storage.queues.send(LATER, [NewMessage(b"once")], idempotency_key="k")
        [more] = await storage.streams.append_to_shard(CLICKS, 0, [Record(b"more")])
        await storage.groups.commit(READERS, [Commit(0, more.offset + 1)])
        [done] = await storage.groups.lags.by_shard(READERS)

        assert (lag.committed, lag.records) == (3, 2)
        assert [letter.body for letter in letters] == [b"bad"]
        assert (stats.delayed, stats.ready, stats.dead_lettered) == (1, 1, 0)
        assert hook.secrets
        assert (fault or chain.end(), chain.seq) == (None, 1)
        assert again.message_id == token["message_id"]
        assert await storage.credentials.authenticate(token["word"]) is not None
        assert (done.committed, done.records) == (more.offset + 1, 0)


async def test_commit_that_rows_lack_is_restored(source, target, tmp_path, monkeypatch):
    async with open_storage(source) as storage:
        await storage.catalog.put_stream(CLICKS, StreamSpec())
        await storage.groups.put(READERS, GroupSpec(stream="clicks", kind=GroupKind.SIMPLE))
        await storage.streams.append(CLICKS, [Record(b"%d" % number) for number in range(5)])
        monkeypatch.setattr(storage.groups.copier, "add", lambda _: None)
        await storage.groups.commit(READERS, [Commit(0, 3)])
        await backed_up(source, tmp_path / "backup")
    await restored(target, tmp_path / "backup")

    async with open_storage(target) as storage:
        [lag] = await storage.groups.lags.by_shard(READERS)
        fetched = await storage.groups.fetcher.fetch(READERS)
        [again] = await storage.groups.commit(READERS, [Commit(0, 1)])

    assert (lag.committed, lag.records) == (3, 2)
    assert [one.record.data for read in fetched.reads for one in read.records] == [b"3", b"4"]
    assert again == GroupOffset(0, 3)


async def test_source_is_restored_with_its_url_ids_and_waiting_events(source, target, tmp_path):
    async with open_storage(source) as storage:
        await storage.catalog.put_queue(LATER, QueueSpec())
        spec = SourceSpec(
            provider=WebhookProvider.GITHUB, secrets=("a secret",), into=SourceTarget(queue="later")
        )
        token = (await storage.sources.put(PROVIDER, spec)).definition.tokens[0].value
        await storage.catalog.delete_queue(LATER)
        accepted = await post(storage, token, "waits")
    await backed_up(source, tmp_path / "backup")
    await restored(target, tmp_path / "backup")

    async with open_storage(target) as storage:
        again, fresh = await post(storage, token, "waits"), await post(storage, token, "new")
        definition = await storage.sources.get(PROVIDER)
        waiting = (await storage.source_transfer.counts(definition)).waiting
        await storage.catalog.put_queue(QueueName("other"), QueueSpec())
        moved = replace(spec, secrets=None, into=SourceTarget(queue="other"))
        changed = (await storage.sources.put(PROVIDER, moved)).definition
        await storage.source_transfer.complete(changed)
        bodies = await received(storage, QueueName("other"))

    assert [reception.duplicate for reception in (accepted, again, fresh)] == [False, True, False]
    assert (waiting, bodies) == (2, [b"waits", b"new"])


async def post(storage, token, body):
    """Post an event whose id is its body to the source of that URL."""
    provider = await storage.source_receiver.find(PROVIDER.name, token)
    headers = sign(provider.spec, "a secret", body.encode(), event_id=body, timestamp=0)
    return await storage.source_receiver.receive(provider, headers, body.encode())


async def create_one_of_each(storage):
    """Create one object of each kind; returns what the test must find again."""
    await storage.catalog.put_queue(ORDERS, QueueSpec(attempts_max=1))
    await storage.catalog.put_queue(LATER, QueueSpec())
    await storage.catalog.put_stream(CLICKS, StreamSpec())
    await storage.groups.put(READERS, GroupSpec(stream="clicks", kind=GroupKind.SIMPLE))
    await storage.streams.append(CLICKS, [Record(b"%d" % number) for number in range(5)])
    await storage.groups.commit(READERS, [Commit(0, 3)])
    await storage.queues.send(ORDERS, [NewMessage(b"bad")])
    [bad] = await storage.queues.receive(ORDERS, visibility_timeout_ms=60_000)
    await storage.queues.settle(ORDERS, [Settlement(bad.receipt_handle, SettleAction.NACK)])
    await storage.queues.send(LATER, [NewMessage(b"in a day", delay_ms=86_400_000)])
    [once] = await storage.queues.send(LATER, [NewMessage(b"once")], idempotency_key="k")
    spec = WebhookSpec(source=Source(SourceKind.QUEUE, "later"), url="https://example.com/hook")
    await storage.webhooks.put(HOOK, spec)
    request = CredentialRequest(name="ada", rights=Rights(roles=(Role.PRODUCER,)))
    _, secret = await storage.credentials.create(LOCAL_ADMINISTRATOR, request)
    await storage.audit_log.record(audited_call(), "done", {"name": "orders"})
    return {"message_id": once.message_id, "word": secret.token}


def audited_call():
    return AuditedCall.of(
        at_ms=1_700_000_000_000,
        protocol=ApiProtocol.REST,
        namespace="default",
        principal="ada",
        credential="k1",
        authenticated="api_key",
        address="127.0.0.1",
        operation="put_queue",
        action="queue:manage",
        resource="queues/orders",
        request_id="r1",
    )


@pytest.fixture
def backup_of_little(source, tmp_path):
    """A backup of a deployment with one queue."""

    async def make():
        async with open_storage(source) as storage:
            await storage.catalog.put_queue(ORDERS, QueueSpec())
            await storage.queues.send(ORDERS, [NewMessage(b"one")])

    asyncio.run(make())
    backup.backup(source, tmp_path / "backup", SystemClock(), VERSION)
    return tmp_path / "backup"


@pytest.mark.one_store
@pytest.mark.one_server
def test_jobs_are_copied_before_store_and_others_after(source, target, tmp_path, monkeypatch):
    """Otherwise a replay skips records sent meanwhile, and archived files are unknown."""
    execute(source, JOB)

    def meanwhile(url):
        execute(source, "update job_parts set position = 9")
        execute(source, QUERY)
        execute(source, NAMESPACE.format("late"))
        return snapshot_of(url)

    monkeypatch.setattr(backup, "snapshot_of", meanwhile)

    backup.backup(source, tmp_path / "backup", SystemClock(), VERSION)
    restore.restore(target, tmp_path / "backup", "bundled")

    with psycopg.connect(target.database_url) as cold:
        assert cold.execute("select position from job_parts").fetchall() == [(3,)]
        assert cold.execute("select job_id, result from query_results").fetchall() == [("j", b"{}")]
        names = cold.execute("select name from namespaces order by name").fetchall()
        assert names == [("default",), ("late",)]


def test_views_are_copied_before_store(source, target, tmp_path, monkeypatch):
    """Otherwise rows of a restored view include records that the store does not have."""
    execute(source, VIEW)

    def meanwhile(url):
        execute(source, "update view_revisions set progress = '{\"batch\": 2}'")
        execute(source, "insert into view_rows values ('r', 'b', null, '', null, 2, 0)")
        execute(source, "delete from view_outbox")
        return snapshot_of(url)

    monkeypatch.setattr(backup, "snapshot_of", meanwhile)

    backup.backup(source, tmp_path / "backup", SystemClock(), VERSION)
    restore.restore(target, tmp_path / "backup", "bundled")

    with psycopg.connect(target.database_url) as cold:
        progress = cold.execute("select progress from view_revisions").fetchall()
        rows = cold.execute("select key, output::text from view_rows").fetchall()
        owed = cold.execute("select sink, sequence, output from view_outbox").fetchall()
    # numbers that sinks may have got since the backup are not used again
    assert progress == [({"batch": 1, "messages": 7 + limits.RESTORE_SKIPS_OFFSETS},)]
    assert rows == [(b"a", '{"n": 1.50}')]
    assert owed == [("queue:q", 6, '{"n": 1.50}')]


NAMESPACE = """
    insert into namespaces (name, account_id, quotas, version, created_at_ms, changed_at_ms, over)
    values ('{}', '1', '{{}}', 1, 0, 0, false)
"""
JOB = """
    insert into jobs (job_id, namespace, kind, subject, spec, state, wish, attempt, failures, attempts_max, run_after_ms,
                      progress, failure, created_at_ms)
    values ('j', 'default', 'replay', 'clicks', '{}', 'running', '', 1, 0, 3, 0, '{}', '', 0);
    insert into job_parts values ('j', '0', 3, false, '{}');
    insert into query_results values ('j', '{}')
"""
QUERY = """
    insert into jobs select 'q', namespace, kind, 'of a query', spec, state, wish, attempt, failures, attempts_max,
                            run_after_ms, worker, lease_until_ms, progress, failure, created_at_ms from jobs;
    insert into query_results values ('q', '{}')
"""
"""A query that ends during a backup, whose job the backup does not have."""
VIEW = """
    insert into views values ('default', 'v', '{}', 1, 0, 0, 'i');
    insert into view_revisions values
      ('r', 'i', 'default', 'clicks', 's', 1, '{}', '{}', 'active', '{"batch": 1, "messages": 7}', '', 0, false);
    insert into view_rows values ('r', 'a', '{"n": 1.50}', '', null, 1, 0);
    insert into view_sinks values ('i', 'queue:q', 1, 6, '');
    insert into view_outbox values ('i', 'queue:q', 1, 6, 1, 'insert', 'a', '{"n": 1.50}', null)
"""


@pytest.mark.one_store
@pytest.mark.one_server
def test_namespace_deleted_during_backup_is_reported(source, tmp_path, monkeypatch):
    execute(source, NAMESPACE.format("gone"))
    execute(source, JOB.replace("default", "gone"))

    def meanwhile(_):
        execute(source, "delete from jobs; delete from namespaces where name = 'gone'")
        return iter(())

    monkeypatch.setattr(backup, "snapshot_of", meanwhile)

    with pytest.raises(BackupError, match="a namespace was removed during the backup"):
        backup.backup(source, tmp_path / "backup", SystemClock(), VERSION)


@pytest.mark.one_store
async def test_replica_set_is_restored_into_one_store(source, target, tmp_path):
    """Every backup of replicated stores was refused, as it is copied from a replica."""
    (tmp_path / "set").mkdir()
    with running_stores(tmp_path / "set", 2) as members:
        follow(members[0], members[1:], epoch=1)
        members[0].run("SET", "ms:value", "one")
        follow(members[0], members[1:], epoch=1)
        of_set = source.model_copy(
            update={"redis_url": url_of(members), "durability": "replicated"}
        )
        await backed_up(of_set, tmp_path / "backup")

    await restored(target, tmp_path / "backup")

    with redis.Redis.from_url(target.redis_url) as client:
        assert client.get("ms:value") == b"one"
        assert client.role()[0] == b"master"


@pytest.mark.one_store
async def test_restored_deployment_has_no_members(source, target, tmp_path):
    """They are the stores of the deployment that was lost; a term of it is not begun again."""
    async with open_database(source) as database:
        assert await ReplicaSetRows(database).initialize(("a:1", "b:1", "c:1"), "a:1", 9, 2)
    await backed_up(source, tmp_path / "backup")

    await restored(target, tmp_path / "backup")

    async with open_database(target) as database:
        rows = ReplicaSetRows(database)
        assert await rows.read() is None
        assert await rows.last_term() > 9
        assert await rows.initialize(("d:1", "e:1"), "d:1", 11, 2)


def test_older_schema_is_restored_and_migrated(postgres_server_url, target):
    with fresh_database(postgres_server_url, "template1") as old_url:
        with connected(old_url) as connection:
            command.upgrade(config_of(connection), "0009")
        execute_at(old_url, "insert into namespaces (name, account_id) values ('ours', '7')")
        files: dict[str, io.BytesIO] = {}
        with dump.moment_of(old_url) as moment:
            tables = []
            for name, columns in moment.tables():
                file = files[name] = io.BytesIO()
                tables.append(Table(name, columns, moment.copy(name, columns, file.write)))
                file.seek(0)

    dump.fill(target.database_url, "0009", tables, lambda table: files[table.name])
    dump.finish(target.database_url)

    migrate(target)

    with psycopg.connect(target.database_url) as cold:
        assert cold.execute("select version_num from alembic_version").fetchone() == (head(),)
        names = cold.execute("select name, account_id from namespaces where name = 'ours'")
        assert names.fetchall() == [("ours", "7")]


def execute(stores, statements):
    execute_at(stores.database_url, statements)


@pytest.mark.one_store
def test_backup_is_private_and_contains_no_key(backup_of_little):
    files = [one for one in backup_of_little.rglob("*") if one.is_file()]

    assert stat.S_IMODE(backup_of_little.stat().st_mode) == 0o700
    assert {stat.S_IMODE(one.stat().st_mode) for one in files} == {0o600}
    assert not any(KEYS[0].encode() in one.read_bytes() for one in files)


@pytest.mark.one_store
@pytest.mark.one_server
@pytest.mark.parametrize("path", [MANIFEST, SNAPSHOT, "postgres/queues.copy"])
def test_changed_byte_is_rejected_before_anything_is_written(backup_of_little, target, path):
    damaged = backup_of_little / path
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)

    with pytest.raises(BackupError, match="corrupt"):
        restore.restore(target, backup_of_little, "bundled")

    assert is_empty(target)


@pytest.mark.one_store
@pytest.mark.one_server
def test_invalid_backup_is_rejected_with_reason(backup_of_little, target, tmp_path):
    manifest = backup_of_little / MANIFEST
    whole = manifest.read_text()

    with pytest.raises(BackupError, match="is not a complete backup"):
        restore.restore(target, tmp_path, "bundled")
    manifest.write_text(whole.replace('"format": 1', '"format": 3'))
    with pytest.raises(BackupError, match="has format 3"):
        restore.restore(target, backup_of_little, "bundled")
    manifest.write_text(whole)
    (backup_of_little / SNAPSHOT).unlink()
    with pytest.raises(BackupError, match="is missing"):
        restore.restore(target, backup_of_little, "bundled")

    assert is_empty(target)


@pytest.mark.one_store
def test_restore_into_nonempty_stores_is_rejected(backup_of_little, source, target):
    with pytest.raises(StoreInUse, match="the database is not empty"):
        restore.restore(source, backup_of_little, "bundled")
    half = source.model_copy(update={"database_url": target.database_url})
    with pytest.raises(StoreInUse, match="the store is not empty"):
        restore.restore(half, backup_of_little, "bundled")

    assert is_empty(target)


@pytest.mark.one_store
@pytest.mark.parametrize("step", ["fill", "finish"])
async def test_nothing_starts_on_unfinished_restore(source, target, tmp_path, monkeypatch, step):
    async with open_storage(source) as storage:
        await storage.catalog.put_queue(ORDERS, QueueSpec())
    await backed_up(source, tmp_path / "backup")

    def broken(*_):
        raise ConnectionResetError

    where = SnapshotStore if step == "fill" else dump
    monkeypatch.setattr(where, step, broken)
    with pytest.raises(MillstreamError):
        await restored(target, tmp_path / "backup")

    with pytest.raises(RestoreUnfinished):
        migrate(target)
    async with open_storage(target) as storage:
        with pytest.raises(RestoreUnfinished):
            await storage.queues.send(ORDERS, [NewMessage(b"lost")])
        readiness = await storage.health.check()
    assert readiness["redis"] == "a restore into the store is incomplete"
    with pytest.raises(BackupError, match="interrupted"):
        await backed_up(target, tmp_path / "of half")
    with pytest.raises(StoreInUse):
        await restored(target, tmp_path / "backup")


@pytest.mark.one_store
def test_failing_tables_leave_both_stores_empty(backup_of_little, target, monkeypatch):
    monkeypatch.setattr(restore, "check_parts", lambda *_: None)
    (backup_of_little / "postgres" / "queues.copy").write_bytes(b"")

    with pytest.raises(BackupError, match="0 rows, but the manifest lists 1"):
        restore.restore(target, backup_of_little, "bundled")

    assert is_empty(target)


@pytest.mark.one_store
@pytest.mark.one_server
def test_interrupted_backup_leaves_nothing(source, tmp_path, monkeypatch):
    def broken(_):
        yield b"REDIS"
        raise BackupError("the store was interrupted")

    monkeypatch.setattr(backup, "snapshot_of", broken)
    with pytest.raises(BackupError, match="interrupted"):
        backup.backup(source, tmp_path / "backup", SystemClock(), VERSION)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.one_store
def test_existing_destination_is_rejected(source, tmp_path):
    with pytest.raises(BackupError, match="already exists"):
        backup.backup(source, tmp_path, SystemClock(), VERSION)


def is_empty(stores):
    with (
        redis.Redis.from_url(stores.redis_url) as hot,
        psycopg.connect(stores.database_url) as cold,
    ):
        found = cold.execute("select count(*) from pg_tables where schemaname = 'public'")
        return hot.dbsize() == 0 and found.fetchone() == (0,)
