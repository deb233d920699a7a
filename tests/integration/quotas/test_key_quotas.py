"""Namespaces and quotas with credentials: administration, rates of a key, audit."""

import pytest

from storage.domain.access.credentials import Rights
from storage.domain.access.permissions import EVERYTHING, Principal, Role
from storage.domain.quotas import NO_QUOTAS, Rates
from tests.guarded import Guarded, guarding

pytestmark = pytest.mark.one_store

TENANT = "tenant-a"


@pytest.fixture
async def guarded(redis_url, database_url):
    async with guarding(redis_url, database_url) as guarded:
        await guarded.storage.namespaces.put(TENANT, NO_QUOTAS)
        yield guarded


async def test_namespaces_require_deployment_administrator(guarded: Guarded):
    everywhere = await guarded.key(all_namespaces=True)
    own = await guarded.key(by=Principal("root", TENANT, EVERYTHING))
    path = f"/v1/namespaces/{TENANT}"

    refused = [
        await guarded.ask("GET", "/v1/namespaces", own),
        await guarded.ask("GET", path, own),
        await guarded.ask("PUT", path, own, json={}),
        await guarded.ask("DELETE", path, own),
    ]
    changed = await guarded.ask("PUT", path, everywhere, json={"queues_max": 3})

    assert {answer.status_code for answer in refused} == {403}
    assert changed.status_code == 200


async def test_namespace_with_live_keys_cannot_be_deleted(guarded: Guarded):
    everywhere = await guarded.key(all_namespaces=True)
    await guarded.key(by=Principal("root", TENANT, EVERYTHING))

    answer = await guarded.ask("DELETE", f"/v1/namespaces/{TENANT}", everywhere)

    assert answer.status_code == 409
    assert answer.json()["holds"] == {"live_keys": 1}


async def test_quota_change_is_audited_with_previous_value(guarded: Guarded):
    everywhere = await guarded.key(all_namespaces=True)
    path = f"/v1/namespaces/{TENANT}"
    await guarded.ask("PUT", path, everywhere, json={"queues_max": 3})
    await guarded.ask("PUT", path, everywhere, json={"queues_max": 5})

    told = await guarded.ask("GET", "/v1/audit?operation=put_namespace", everywhere)

    [last, *_] = told.json()["items"]
    assert (last["resource"], last["outcome"]) == (f"namespaces/{TENANT}", "done")
    assert (last["before"], last["after"]) == ({"queues_max": 3}, {"queues_max": 5})


async def test_key_rates_apply_to_that_key_only(guarded: Guarded):
    slow = Rates(calls_per_second=0.001, burst_seconds=3600)
    first = await guarded.key(Rights(roles=(Role.ADMIN,), rates=slow))
    other = await guarded.key(Rights(roles=(Role.ADMIN,)))

    answers = [await guarded.ask("GET", "/v1/queues", first) for _ in range(4)]
    elsewhere = await guarded.ask("GET", "/v1/queues", other)

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[3].json()["policy"] == "key"
    assert elsewhere.status_code == 200
