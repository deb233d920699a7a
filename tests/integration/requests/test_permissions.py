"""Permissions of requests: who asks, who replies, and who reads the replies."""

import pytest

from storage.domain.access.credentials import Rights
from storage.domain.access.permissions import Effect, Grant, Role
from tests.secured_service import running_secured_service

pytestmark = pytest.mark.one_store

ASK = "/v1/queues/orders/requests"


@pytest.fixture
async def secured_service(redis_url, database_url):
    async with running_secured_service(redis_url, database_url) as secured_service:
        yield secured_service


@pytest.mark.parametrize(
    ("rights", "statuses"),
    [
        (Rights(roles=(Role.PRODUCER,)), (202, 200, 403)),
        (Rights(roles=(Role.CONSUMER,)), (403, 200, 409)),
        (Rights(roles=(Role.VIEWER,)), (403, 200, 403)),
        (Rights(grants=(Grant(Effect.ALLOW, ("queue:receive",), ("other",)),)), (403, 200, 409)),
    ],
    ids=["producer", "consumer", "viewer", "of another queue"],
)
async def test_caller_may_do_what_its_grants_allow(secured_service, rights, statuses):
    """One who may receive some queue may reply; the request has its reply, so this is refused with 409."""
    admin, caller = await secured_service.key(), await secured_service.key(rights)
    body = {"body": "a", "wait_seconds": 0}
    request = (await secured_service.request("POST", ASK, admin, json=body)).json()["request"]
    path = f"/v1/requests/{request}"
    first = await secured_service.request("POST", f"{path}/replies", admin, json={"body": "b"})
    assert first.status_code == 201

    calls = [
        await secured_service.request("POST", ASK, caller, json=body),
        await secured_service.request("GET", f"{path}/reply", caller),
        await secured_service.request("POST", f"{path}/replies", caller, json={"body": "b"}),
    ]

    assert tuple(call.status_code for call in calls) == statuses


async def test_replies_require_credentials(secured_service):
    response = await secured_service.request("GET", "/v1/requests/x/reply")

    assert response.status_code == 401
