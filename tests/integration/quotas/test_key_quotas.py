"""Namespaces and quotas with credentials: administration, rates of a key, audit."""

import pytest

from storage.domain.access.credentials import Rights
from storage.domain.access.permissions import EVERYTHING, Principal, Role
from storage.domain.quotas import NO_QUOTAS, Rates
from tests.secured_service import SecuredService, running_secured_service

pytestmark = pytest.mark.one_store

TENANT = "tenant-a"


@pytest.fixture
async def secured_service(redis_url, database_url):
    async with running_secured_service(redis_url, database_url) as secured_service:
        await secured_service.storage.namespaces.put(TENANT, NO_QUOTAS)
        yield secured_service


async def test_namespaces_require_deployment_administrator(secured_service: SecuredService):
    everywhere = await secured_service.key(all_namespaces=True)
    own = await secured_service.key(by=Principal("root", TENANT, EVERYTHING))
    path = f"/v1/namespaces/{TENANT}"

    refused = [
        await secured_service.request("GET", "/v1/namespaces", own),
        await secured_service.request("GET", path, own),
        await secured_service.request("PUT", path, own, json={}),
        await secured_service.request("DELETE", path, own),
    ]
    changed = await secured_service.request("PUT", path, everywhere, json={"queues_max": 3})

    assert {answer.status_code for answer in refused} == {403}
    assert changed.status_code == 200


async def test_namespace_with_live_keys_cannot_be_deleted(secured_service: SecuredService):
    everywhere = await secured_service.key(all_namespaces=True)
    await secured_service.key(by=Principal("root", TENANT, EVERYTHING))

    answer = await secured_service.request("DELETE", f"/v1/namespaces/{TENANT}", everywhere)

    assert answer.status_code == 409
    assert answer.json()["holds"] == {"live_keys": 1}


async def test_quota_change_is_audited_with_previous_value(secured_service: SecuredService):
    everywhere = await secured_service.key(all_namespaces=True)
    path = f"/v1/namespaces/{TENANT}"
    await secured_service.request("PUT", path, everywhere, json={"queues_max": 3})
    await secured_service.request("PUT", path, everywhere, json={"queues_max": 5})

    response = await secured_service.request(
        "GET", f"/v1/audit?resource=namespaces/{TENANT}", everywhere
    )

    [last, *_] = response.json()["items"]
    assert (last["resource"], last["outcome"]) == (f"namespaces/{TENANT}", "done")
    assert (last["before"], last["after"]) == ({"queues_max": 3}, {"queues_max": 5})


async def test_key_rates_apply_to_that_key_only(secured_service: SecuredService):
    slow = Rates(calls_per_second=0.001, burst_seconds=3600)
    first = await secured_service.key(Rights(roles=(Role.ADMIN,), rates=slow))
    other = await secured_service.key(Rights(roles=(Role.ADMIN,)))

    answers = [await secured_service.request("GET", "/v1/queues", first) for _ in range(4)]
    elsewhere = await secured_service.request("GET", "/v1/queues", other)

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[3].json()["policy"] == "key"
    assert elsewhere.status_code == 200
