"""Stores over REST and the command line: one store, and the verbs of a replica set."""

from collections.abc import AsyncGenerator

import pytest

from storage.bootstrap import open_storage
from storage.domain.access.audit import AuditFilter
from storage.domain.access.credentials import Rights
from storage.domain.access.permissions import Role
from storage.settings import StorageSettings
from tests.recorded_replica_set import (
    FIRST,
    SECOND,
    THIRD,
    RecordedReplicaSet,
    serving_replica_set,
)
from tests.secured_service import SecuredService, running_secured_service

pytestmark = [pytest.mark.one_store, pytest.mark.one_server]

ACTIONS = [
    ("PATCH", "", {"min_insync_replicas": 3}, ("set_min_insync", 3)),
    ("POST", "/switch-over", {}, ("switch_over", None)),
    ("POST", "/switch-over", {"to": SECOND}, ("switch_over", SECOND)),
    ("POST", "/replace", {"old": SECOND, "new": THIRD}, ("replace", SECOND, THIRD)),
    ("POST", "/recover", {"accept_loss": True, "from": FIRST}, ("recover", FIRST, True)),
    ("POST", "/members", {"address": THIRD}, ("add", THIRD)),
    ("DELETE", f"/members/{THIRD}", None, ("remove", THIRD)),
]


@pytest.fixture
async def one_store(redis_url, database_url) -> AsyncGenerator[SecuredService]:
    async with running_secured_service(redis_url, database_url) as service:
        yield service


@pytest.fixture
def replica_set() -> RecordedReplicaSet:
    return RecordedReplicaSet()


@pytest.fixture
async def replicated(
    redis_url, database_url, replica_set, tmp_path
) -> AsyncGenerator[SecuredService]:
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with (
        open_storage(settings) as storage,
        serving_replica_set(storage, replica_set, tmp_path, "keys") as server,
    ):
        yield SecuredService(server, storage)


async def test_one_store_is_its_own_primary(one_store):
    key = await one_store.key(all_namespaces=True)

    stores = (await one_store.request("GET", "/v1/stores", key)).json()

    [member] = stores.pop("members")
    primary = stores.pop("primary")
    assert stores.pop("epoch") >= 0
    assert stores == {
        "durability": "always",
        "replication_factor": 1,
        "min_insync_replicas": 1,
        "insync_replicas": 1,
        "term": 0,
        "state": "normal",
        "unknown_replicas": [],
    }
    assert (member["role"], member["state"], member["pid"]) == ("primary", "insync", None)
    assert member["address"] == primary
    assert "@" not in primary


@pytest.mark.parametrize(("method", "path", "body", "_"), ACTIONS)
async def test_one_store_refuses_changes(method, path, body, _, one_store):
    key = await one_store.key(all_namespaces=True)

    answer = await one_store.request(method, f"/v1/stores{path}", key, json=body)

    assert answer.status_code == 409
    assert answer.json()["code"] == "replica_set_refused"
    assert "one store" in answer.json()["detail"]


async def test_members_of_replica_set_are_shown(replicated):
    key = await replicated.key(all_namespaces=True)

    stores = (await replicated.request("GET", "/v1/stores", key)).json()

    members = {member["address"]: member for member in stores.pop("members")}
    assert stores == {
        "durability": "replicated",
        "replication_factor": 3,
        "min_insync_replicas": 2,
        "insync_replicas": 2,
        "primary": FIRST,
        "term": 9,
        "epoch": 8,
        "state": "normal",
        "unknown_replicas": ["10.0.0.9:6379"],
    }
    assert (members[FIRST]["epoch"], members[FIRST]["position"]) == (8, 81234)
    assert members[THIRD]["state"] == "away"
    assert members[THIRD]["position"] is None


async def test_queue_stats_show_copies(replicated):
    key = await replicated.key()
    await replicated.request("PUT", "/v1/queues/orders", key, json={})

    stats = (await replicated.request("GET", "/v1/queues/orders/stats", key)).json()

    assert (stats["replication_factor"], stats["min_insync_replicas"]) == (3, 2)


async def test_metrics_describe_members(replicated):
    key = await replicated.key(all_namespaces=True)

    lines = (await replicated.request("GET", "/metrics", key)).text.splitlines()

    prefix = "millstream_store_"
    counted = ("failovers", "confirm")  # by processes, not read from the stores
    assert {
        line.removeprefix(prefix)
        for line in lines
        if line.startswith(prefix) and not line.removeprefix(prefix).startswith(counted)
    } == {
        'members{state="primary"} 1.0',
        'members{state="insync"} 1.0',
        'members{state="behind"} 0.0',
        'members{state="away"} 1.0',
        "insync_replicas 2.0",
        "min_insync_replicas 2.0",
        "epoch 8.0",
        "term 9.0",
        f'replication_lag_bytes{{member="{FIRST}"}} 0.0',
        f'replication_lag_bytes{{member="{SECOND}"}} 0.0',
        f'full_resyncs_total{{member="{FIRST}"}} 2.0',
        "unknown_replicas 1.0",
    }


@pytest.mark.parametrize(("method", "path", "body", "call"), ACTIONS)
async def test_change_reaches_replica_set(method, path, body, call, replicated, replica_set):
    key = await replicated.key(all_namespaces=True)

    answer = await replicated.request(method, f"/v1/stores{path}", key, json=body)

    assert replica_set.calls == [call]
    assert answer.status_code == 200
    assert answer.json() == {
        "members": [FIRST, SECOND, THIRD],
        "primary": FIRST,
        "term": 9,
        "epoch": 8,
        "state": "normal",
        "min_insync_replicas": 2,
    }


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/switch-over", {"to": "no address"}),
        ("/recover", {"from": FIRST}),
        ("/recover", {"accept_loss": False, "from": FIRST}),
        ("/replace", {"old": FIRST}),
        ("/members", {"address": FIRST, "role": "primary"}),
    ],
)
async def test_invalid_change_is_rejected(path, body, replicated, replica_set):
    key = await replicated.key(all_namespaces=True)

    answer = await replicated.request("POST", f"/v1/stores{path}", key, json=body)

    assert answer.status_code == 422
    assert answer.json()["code"] == "validation_failed"
    assert replica_set.calls == []


async def test_changes_and_their_refusals_are_audited(replicated):
    key = await replicated.key(all_namespaces=True)

    for store in (SECOND, "gone:1"):
        await replicated.request("POST", "/v1/stores/switch-over", key, json={"to": store})

    entries = await replicated.storage.audit_log.page(AuditFilter(resource="stores/switch-over"))
    assert [(entry.call.operation, entry.outcome) for entry in entries] == [
        ("switch_over_stores", "refused:replica_set_refused"),
        ("switch_over_stores", "done"),
    ]


@pytest.mark.parametrize(
    ("rights", "all_namespaces"),
    [
        (Rights(roles=(Role.OPERATOR,)), True),
        (Rights(roles=(Role.ADMIN,)), False),
    ],
)
async def test_stores_are_for_administrators_of_all_namespaces(rights, all_namespaces, replicated):
    key = await replicated.key(rights, all_namespaces=all_namespaces)

    seen = await replicated.request("GET", "/v1/stores", key)
    changed = await replicated.request("POST", "/v1/stores/switch-over", key, json={})

    assert (seen.status_code, changed.status_code) == (403, 403)
