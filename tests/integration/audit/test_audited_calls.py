"""Auditing of an administrative call, also when the log cannot be written."""

import asyncio

import httpx
import psycopg
import pytest

from api.app import create_app
from api.auth.audit import Auditing, AuditSubject, Caller, Ration, claimed_id
from api.config.settings import Settings
from storage.domain import limits
from storage.domain.access.audit import ApiProtocol, AuditFilter
from storage.domain.access.permissions import GRANTS_OF, Action, Policy, Principal, Role
from storage.domain.errors import Forbidden, StorageUnavailable, Unauthenticated
from storage.domain.names import QueueName
from storage.domain.queues.queue import QueueSpec

pytestmark = pytest.mark.one_store

ORDERS = QueueName("orders")
PURGE = AuditSubject(
    "purge_queue", Action.QUEUE_PURGE, "queues/orders/purges", "orders", "queues", "orders"
)


def caller(role):
    principal = Principal("ada", policy=Policy((GRANTS_OF[role],)), credential="k1")
    return Caller(principal, ApiProtocol.REST, "10.0.0.7", "r1")


@pytest.fixture
async def auditing(engines):
    await engines.catalog.put_queue(ORDERS, QueueSpec())
    return Auditing(lambda: engines)


async def outcomes(engines):
    audit_logs = await engines.audit_log.page(AuditFilter(), oldest_first=True)
    return [(entry.call.principal, entry.call.operation, entry.outcome) for entry in audit_logs]


class Calls:
    """An operation that counts its executions."""

    def __init__(self, error=None):
        self.count = 0
        self._error = error

    async def __call__(self):
        self.count += 1
        if self._error:
            raise self._error
        return "done"


async def test_forbidden_call_is_recorded_and_not_executed(auditing, engines):
    purge = Calls()

    with pytest.raises(Forbidden):
        await auditing.run(caller(Role.VIEWER), PURGE, purge)

    assert purge.count == 0
    assert await outcomes(engines) == [("ada", "purge_queue", "refused:forbidden")]


async def test_refusals_per_minute_are_bounded_and_counted(auditing, engines, clock):
    async def try_in_vain():
        with pytest.raises(Forbidden):
            await auditing.run(caller(Role.VIEWER), PURGE, Calls())

    for _ in range(limits.AUDIT_REFUSALS_PER_MINUTE + 7):
        await try_in_vain()
    assert len(await outcomes(engines)) == limits.AUDIT_REFUSALS_PER_MINUTE

    clock.advance(ms=limits.MINUTE_MS)
    await try_in_vain()

    [newest] = await engines.audit_log.page(AuditFilter(), limit=1)
    assert newest.after == {"refusals_left_out": 7}


async def test_call_is_not_started_when_intent_cannot_be_written(auditing, engines, database_url):
    execute(database_url, "alter table audit_pending rename to elsewhere")
    purge = Calls()

    with pytest.raises(StorageUnavailable):
        await auditing.run(caller(Role.ADMIN), PURGE, purge)

    assert purge.count == 0


async def test_completed_call_is_answered_when_entry_cannot_be_written(
    auditing, engines, database_url
):
    execute(database_url, "alter table audit rename to elsewhere")

    assert await auditing.run(caller(Role.ADMIN), PURGE, Calls()) == "done"

    with psycopg.connect(database_url) as connection:
        row = connection.execute("select count(*) from audit_pending").fetchone()
    assert row == (1,)


async def test_internal_error_is_recorded_as_failed(auditing, engines):
    with pytest.raises(RuntimeError):
        await auditing.run(caller(Role.ADMIN), PURGE, Calls(RuntimeError("a bug")))

    assert await outcomes(engines) == [("ada", "purge_queue", "failed:internal_error")]


async def test_cancelled_call_leaves_intent_for_maintenance(auditing, engines, clock):
    begun = asyncio.Event()

    async def never():
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(auditing.run(caller(Role.ADMIN), PURGE, never))
    await begun.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    clock.advance(ms=limits.AUDIT_INTENT_MS + 1)
    await engines.audit_log.close_abandoned()

    assert await outcomes(engines) == [("ada", "purge_queue", "unknown")]


async def test_unauthenticated_caller_is_recorded_in_background(auditing, engines):
    word = "msk_" + "i" * 12 + "_" + "s" * 38
    headers = {b"authorization": f"Bearer {word}".encode()}
    auditing.record_anonymous_failure(
        Unauthenticated(),
        protocol=ApiProtocol.WS,
        client=("10.0.0.7", 5),
        headers=headers,
        request_id=b"r1",
    )
    await auditing.settled()

    [entry] = await engines.audit_log.page(AuditFilter())
    assert (entry.call.operation, entry.outcome) == ("log_in", "refused:unauthenticated")
    assert (entry.call.address, entry.call.protocol) == ("10.0.0.7", ApiProtocol.WS)
    assert entry.call.credential == "i" * 12


async def test_unwritable_intent_returns_503_over_http(engines, database_url):
    app = create_app(Settings(_env_file=None), engines)
    execute(database_url, "alter table audit_pending rename to elsewhere")

    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.put("/v1/queues/orders", json={})
        seen = await client.get("/v1/queues/orders")

    assert (answer.status_code, answer.json()["code"]) == (503, "storage_unavailable")
    assert seen.status_code == 404


@pytest.mark.parametrize(
    ("headers", "claimed"),
    [
        ({}, ""),
        ({b"authorization": b"Bearer hunter2"}, ""),
        ({b"x-api-key": b"msk_" + b"i" * 12 + b"_" + b"s" * 38}, "i" * 12),
        ({b"x-api-key": b"msk_" + b"i" * 40}, ""),
        (
            {b"authorization": b"AWS4-HMAC-SHA256 Credential=MSAK" + b"A" * 16 + b"/2026"},
            "MSAK" + "A" * 16,
        ),
        ({b"authorization": b"AWS4-HMAC-SHA256 Credential=hunter2/2026"}, ""),
    ],
)
def test_only_credential_id_of_unauthenticated_caller_is_kept(headers, claimed):
    assert claimed_id(headers) == claimed


async def test_key_is_recorded_by_rights_and_never_by_secret(engines):
    app = create_app(Settings(_env_file=None), engines)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        made = (await client.post("/v1/keys", json={"name": "shop", "roles": ["viewer"]})).json()
        path = f"/v1/keys/{made['id']}"
        await client.patch(path, json={"roles": ["producer"]})
        rotated = (await client.post(f"{path}/rotations", json={"overlap_seconds": 60})).json()
        await client.delete(path)
        vain = await client.post("/v1/sessions", json={"api_key": "msk_" + "0" * 50})
        await app.control.state.auditing.settled()

    created, changed, renewed, revoked, stranger = await engines.audit_log.page(
        AuditFilter(), oldest_first=True
    )
    assert (created.before, created.after["id"], created.after["roles"]) == (
        None,
        made["id"],
        ["viewer"],
    )
    assert (changed.before["rights"]["roles"], changed.after["rights"]["roles"]) == (
        ["viewer"],
        ["producer"],
    )
    assert renewed.after["id"] == rotated["id"] or "rights" in renewed.after
    assert revoked.call.operation == "revoke_key"
    assert (vain.status_code, stranger.call.operation) == (401, "log_in")
    everything = str([created, changed, renewed, revoked, stranger])
    for secret in (made["secret"], rotated["secret"]):
        assert secret.rpartition("_")[2] not in everything


def test_refusal_limiter_counts_omitted_entries():
    ration = Ration(2)

    assert [ration.take(0) for _ in range(4)] == [0, 0, None, None]
    assert [ration.take(limits.MINUTE_MS) for _ in range(3)] == [2, 0, None]


def execute(url, statement):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)
