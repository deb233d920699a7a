"""The audit log over Postgres: append-only, ordered, and complete for started calls."""

import asyncio

import psycopg
import pytest

from storage.audit.snapshots import definition_snapshot
from storage.domain import limits
from storage.domain.access.audit import ApiProtocol, AuditedCall, AuditFilter, Chain
from storage.domain.access.oauth import OAuthClient, WebhookCredentials
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR
from storage.domain.errors import StorageUnavailable
from storage.domain.names import QueueName
from storage.domain.queues.queue import QueueSpec
from storage.domain.topics.route import RouteSpec, RouteTarget
from storage.domain.webhooks import Source, SourceKind, WebhookSpec

pytestmark = pytest.mark.one_store

ALL = AuditFilter()


def audited_call(resource="queues/orders", **texts):
    request = {
        "namespace": "default",
        "principal": "ada",
        "credential": "k1",
        "authenticated": "api_key",
        "address": "127.0.0.1",
        "operation": "put_queue",
        "action": "queue:manage",
        "request_id": "r1",
    }
    at_ms = texts.pop("at_ms", 1_700_000_000_000)
    return AuditedCall.of(
        at_ms=at_ms, protocol=ApiProtocol.REST, resource=resource, **(request | texts)
    )


async def test_entry_replaces_its_intent(engines, database_url):
    intent = await engines.audit_log.begin(audited_call(), {"delay_ms": 0})
    assert await engines.audit_log.page(ALL) == []

    await engines.audit_log.commit(intent, "done", {"delay_ms": 5})

    [entry] = await engines.audit_log.page(ALL)
    assert (entry.before, entry.after) == ({"delay_ms": 0}, {"delay_ms": 5})
    assert (entry.seq, entry.outcome, entry.call) == (1, "done", audited_call())
    assert count(database_url, "audit_pending") == 0


async def test_abandoned_intent_has_unknown_outcome(engines, clock):
    intent = await engines.audit_log.begin(audited_call(at_ms=clock.now_ms()), {"delay_ms": 0})

    clock.advance(ms=limits.AUDIT_INTENT_MS)
    assert await engines.audit_log.close_abandoned() == 0
    clock.advance(ms=1)
    assert await engines.audit_log.close_abandoned() == 1

    [entry] = await engines.audit_log.page(ALL)
    assert (entry.outcome, entry.before, entry.after) == ("unknown", {"delay_ms": 0}, None)
    assert await engines.audit_log.close_abandoned() == 0

    # The process was alive after all, and records the outcome.
    await engines.audit_log.commit(intent, "done", {"delay_ms": 0})
    newest, _ = await engines.audit_log.page(ALL)
    assert newest.outcome == "done"


async def test_unwritable_intent_is_rejected(engines, database_url):
    execute(database_url, "alter table audit_pending rename to elsewhere")

    with pytest.raises(StorageUnavailable):
        await engines.audit_log.begin(audited_call(), None)


async def test_unwritable_entry_leaves_its_intent(engines, database_url, clock):
    intent = await engines.audit_log.begin(audited_call(at_ms=clock.now_ms()), None)
    execute(database_url, "alter table audit rename to elsewhere")

    await engines.audit_log.commit(intent, "done", None)

    assert count(database_url, "audit_pending") == 1
    execute(database_url, "alter table elsewhere rename to audit")
    clock.advance(ms=limits.AUDIT_INTENT_MS + 1)
    await engines.audit_log.close_abandoned()
    assert [entry.outcome for entry in await engines.audit_log.page(ALL)] == ["unknown"]


async def test_concurrent_entries_have_one_order(engines):
    await asyncio.gather(
        *(engines.audit_log.record(audited_call(request_id=str(n)), "done") for n in range(24))
    )

    audit_logs = await engines.audit_log.page(ALL, oldest_first=True)

    assert [entry.seq for entry in audit_logs] == list(range(1, 25))
    assert Chain(whole=True).check(entry.fields() for entry in audit_logs) is None


@pytest.mark.parametrize(
    "statement",
    ["update audit set principal = 'eve'", "delete from audit", "truncate audit"],
)
async def test_postgres_rejects_rewriting_log(engines, database_url, statement):
    await engines.audit_log.record(audited_call(), "done")

    with pytest.raises(psycopg.errors.RaiseException, match="only grows"):
        execute(database_url, statement)


@pytest.mark.parametrize(
    ("statement", "seq"),
    [
        ("update audit set principal = 'eve' where seq = 3", 3),
        ("update audit set after = '{\"delay_ms\":9}' where seq = 2", 2),
        ("delete from audit where seq = 2", 2),
        ("delete from audit where seq = 1", 1),
        ("update audit set seq = -seq where seq in (2, 3)", -3),
        (
            "update audit a set resource = b.resource, hash = b.hash "
            "from audit b where a.seq in (2, 3) and b.seq = 5 - a.seq",
            2,
        ),
    ],
)
async def test_tampering_is_detected(engines, database_url, statement, seq):
    for number in range(4):
        await engines.audit_log.record(
            audited_call(f"queues/q{number}"), "done", {"delay_ms": number}
        )

    execute(
        database_url,
        f"alter table audit disable trigger user; {statement}; alter table audit enable trigger user",
    )

    audit_logs = await engines.audit_log.page(ALL, oldest_first=True)
    fault = Chain(whole=True).check(entry.fields() for entry in audit_logs)
    assert fault is not None
    assert fault.seq == seq


async def test_entries_are_filtered_by_field(engines):
    say = engines.audit_log.record
    await say(audited_call("queues/orders", at_ms=1_000), "done")
    await say(audited_call("queues/orders/messages/m1", principal="bob", at_ms=2_000), "done")
    await say(audited_call("queues/orders-2", namespace="blue", at_ms=3_000), "refused:forbidden")
    await say(
        audited_call(
            "streams/clicks", action="stream:manage", operation="DeleteStream", at_ms=4_000
        ),
        "done",
    )

    async def seqs(**wanted):
        return [entry.seq for entry in await engines.audit_log.page(AuditFilter(**wanted))]

    assert await seqs() == [4, 3, 2, 1]
    assert await seqs(resource="queues/orders") == [2, 1]
    assert await seqs(principal="bob") == [2]
    assert await seqs(namespace="blue") == [3]
    assert await seqs(action="stream:manage") == [4]
    assert await seqs(operation="put_queue") == [3, 2, 1]
    assert await seqs(operation="delete*") == [4]
    assert await seqs(operation="put_*") == [3, 2, 1]
    assert await seqs(operation="*_queue") == []
    assert await seqs(since_ms=2_000, until_ms=4_000) == [3, 2]
    assert [one.seq for one in await engines.audit_log.page(ALL, after=3, limit=1)] == [2]
    newer = await engines.audit_log.page(ALL, after=2, limit=1, oldest_first=True)
    assert [one.seq for one in newer] == [3]


async def test_snapshot_shows_requested_configuration(engines):
    spec = QueueSpec(delay_ms=5_000, tags={"team": "blue"})
    await engines.catalog.put_queue(QueueName("orders"), spec)

    found = await engines.audit_snapshots.of(LOCAL_ADMINISTRATOR, "queues", "orders")

    assert found["delay_ms"] == 5_000
    assert found["tags"] == {"team": "blue"}
    assert await engines.audit_snapshots.of(LOCAL_ADMINISTRATOR, "queues", "absent") is None
    assert await engines.audit_snapshots.of(LOCAL_ADMINISTRATOR, "queues", "no name!") is None
    assert await engines.audit_snapshots.of(LOCAL_ADMINISTRATOR, "replays", "orders") is None


def test_webhook_snapshot_hides_passwords():
    spec = WebhookSpec(
        source=Source(SourceKind.QUEUE, "orders"),
        url="https://hooks.example.com/T000/s3cr3t?token=hunter2",
        headers=(("Authorization", "Bearer hunter3"),),
        credentials=WebhookCredentials(
            oauth=OAuthClient(
                token_url="https://login.example.com/T1/s3cr3t",
                client_id="shop",
                client_secret="hunter4",
            )
        ),
    )
    target = RouteTarget(url=spec.url, headers=spec.headers, credentials=spec.credentials)

    told = definition_snapshot(spec)
    of_route = definition_snapshot(RouteSpec(target=target))["target"]

    assert told["url"] == "https://hooks.example.com/…"
    assert told["headers"] == ["Authorization"]
    client = {"token_url": "https://login.example.com/…", "client_id": "shop"}
    assert told["credentials"] == of_route["credentials"] == {"oauth": client}
    words = ("s3cr3t", "hunter2", "hunter3", "hunter4")
    assert not any(word in f"{told}{of_route}" for word in words)


def test_large_definition_is_recorded_by_digest():
    tags = {str(number): "x" * 100_000 for number in range(2)}

    told = definition_snapshot(QueueSpec(tags=tags))

    assert set(told) == {"bytes", "sha256"}


def execute(url, statement):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


def count(url, table):
    with psycopg.connect(url) as connection:
        [number] = connection.execute(f"select count(*) from {table}").fetchone() or [0]
        return number
