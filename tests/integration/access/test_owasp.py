"""A test for each risk of the OWASP API Security Top 10 of 2023.

Other tests of a risk:
API1, API3, API5: tests/integration/access/test_authorization_matrix.py, every operation by role, namespace and protocol
API2: tests/integration/access/test_protocols.py, tests/unit/access/test_jwt.py, tests/unit/aws/test_sigv4.py
API4: tests/unit/http/test_slow_requests.py, tests/unit/http/test_item_limits.py, tests/integration/quotas/test_quotas.py
API7: tests/unit/access/test_egress.py, tests/integration/webhooks/test_egress.py
"""

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from api.admin import access
from api.app import create_app
from api.cli.up.programs import PROTOCOLS
from api.config.settings import Settings
from storage.domain import limits
from storage.domain.access.audit import AuditFilter
from storage.domain.access.credentials import Rights
from storage.domain.access.permissions import EVERYTHING, Effect, Grant, Principal, Role
from storage.domain.limits import Limits
from storage.domain.quotas import NO_QUOTAS
from tests.secured_service import SecuredService, running_secured_service
from tests.websocket_client import running_server

pytestmark = pytest.mark.one_store

TENANT = "blue"


@pytest.fixture
async def secured_service(redis_url, database_url) -> AsyncGenerator[SecuredService]:
    async with running_secured_service(redis_url, database_url) as secured_service:
        await secured_service.storage.namespaces.put(TENANT, NO_QUOTAS)
        yield secured_service


async def foreign_key(secured_service: SecuredService) -> Any:
    """An administrator's key of another namespace."""
    return await secured_service.key(by=Principal("root", TENANT, EVERYTHING))


async def test_api1_broken_object_level_authorization(secured_service: SecuredService):
    """Objects of another namespace are not found, like objects that do not exist."""
    own, other = await secured_service.key(), await foreign_key(secured_service)
    await secured_service.request("POST", "/v1/queues/orders/messages", own, json={"body": "a"})
    listed = (await secured_service.request("GET", "/v1/queues/orders/messages", own)).json()
    [message] = listed.get("messages") or listed["items"]

    for path in (
        "/v1/queues/{}",
        f"/v1/queues/{{}}/messages/{message['id']}",
        "/v1/queues/{}/stats",
    ):
        theirs = await secured_service.request("GET", path.format("orders"), other)
        nobodys = await secured_service.request("GET", path.format("absent"), other)
        assert theirs.status_code == nobodys.status_code == 404
        assert theirs.json()["code"] == nobodys.json()["code"]
    for path in (f"/v1/keys/{own.id}", "/v1/keys/absent0000000"):
        assert (await secured_service.request("GET", path, other)).json()["code"] == "key_not_found"


async def test_api2_broken_authentication(secured_service: SecuredService):
    """Wrong secrets and unknown ids get the same answer, and failed logins are logged.

    A secret in a URL is not accepted.
    """
    own = await secured_service.key()
    unknown = own.token.replace(own.id, "0" * len(own.id))
    answers = [
        await secured_service.request(
            "GET", "/v1/queues", headers={"authorization": f"Bearer {word}"}
        )
        for word in (own.token[:-1] + ("a" if own.token[-1] != "a" else "b"), unknown, "nonsense")
    ]
    answers.append(await secured_service.request("GET", f"/v1/queues?api_key={own.token}"))

    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.json()["detail"] for answer in answers[:3]}) == 1
    recorded_entries = await entries(secured_service, outcome="refused:unauthenticated")
    assert recorded_entries
    assert {entry.call.operation for entry in recorded_entries} == {"log_in"}
    assert own.token not in str(recorded_entries)


async def test_api3_broken_object_property_level_authorization(secured_service: SecuredService):
    """Protected fields cannot be written, and responses contain no hidden fields."""
    own = await secured_service.key()
    mass = {"delay_seconds": 1, "version": 9, "namespace": TENANT, "created_at": "2026-01-01"}
    refused = await secured_service.request("PUT", "/v1/queues/mass", own, json=mass)
    raised = await secured_service.request(
        "POST", "/v1/keys", own, json={"name": "eve", "roles": ["admin"], "all_namespaces": True}
    )
    shown = await secured_service.request("GET", f"/v1/keys/{own.id}", own)

    assert refused.json()["code"] == "validation_failed"
    assert raised.status_code in (403, 422)
    assert own.token.rpartition("_")[2] not in shown.text
    assert "digest" not in shown.text


@pytest.mark.parametrize(
    ("path", "body", "kind", "status"),
    [
        ("/v1/queues/orders/messages", b"x" * (limits.REQUEST_BYTES_MAX + 1), "text/plain", 413),
        (
            "/v1/queues/orders/messages",
            b'{"messages":[' + b"{}," * 600_000,
            "application/json",
            413,
        ),
        ("/v1/queues/orders/messages", b"[" * 100_000, "application/json", 422),
        (
            "/v1/groups/g/reset",
            b'{"to":"' + b"x" * limits.CONTROL_BYTES_MAX + b'"}',
            "application/json",
            413,
        ),
        ("/v1/groups/g/reset", b'{"to":' * 100_000, "application/json", 400),
    ],
)
async def test_api4_unrestricted_resource_consumption(
    secured_service: SecuredService, path, body, kind, status
):
    """Oversized and excessive requests are rejected before they take effect."""
    key = await secured_service.key()

    answer = await secured_service.request(
        "POST", path, key, content=body, headers={"content-type": kind}
    )

    assert answer.status_code == status


async def test_api4_pages_waits_and_queries_are_limited(secured_service: SecuredService):
    key = await secured_service.key()
    too_many = "&".join(f"a{number}=1" for number in range(limits.QUERY_PARAMETERS_MAX + 1))

    for path in (
        f"/v1/queues?limit={limits.PAGE_ITEMS_MAX + 1}",
        f"/v1/streams/clicks/shards/0/records?{too_many}",
        "/v1/audit?limit=100000",
    ):
        assert (await secured_service.request("GET", path, key)).status_code == 422
    waiting = await secured_service.request(
        "POST", "/v1/queues/orders/receive", key, json={"wait_seconds": 3600}
    )
    assert waiting.status_code == 422


@pytest.mark.parametrize("role", [Role.VIEWER, Role.PRODUCER, Role.CONSUMER])
async def test_api5_broken_function_level_authorization(secured_service: SecuredService, role):
    """Callers without administrative rights are rejected by administrative calls, and logged."""
    key = await secured_service.key(Rights(roles=(role,)))

    for method, path in (
        ("DELETE", "/v1/queues/orders"),
        ("POST", "/v1/queues/orders/purges"),
        ("POST", "/v1/keys"),
        ("GET", "/v1/audit"),
        ("PUT", "/v1/namespaces/red"),
    ):
        body = {"name": "a", "roles": ["viewer"]} if path == "/v1/keys" else None
        assert (await secured_service.request(method, path, key, json=body)).status_code == 403
    assert {
        entry.call.operation
        for entry in await entries(secured_service, outcome="refused:forbidden")
    } == {
        "delete_queue",
        "purge_queue",
        "create_key",
        "put_namespace",
    }


async def test_api6_unrestricted_access_to_sensitive_business_flows(
    secured_service: SecuredService,
):
    """Irreversible operations need a right of their own, which a deny removes, and are logged."""
    deny = Grant(Effect.DENY, ("queue:purge",), ("orders",))
    careful = await secured_service.key(Rights(roles=(Role.ADMIN,), grants=(deny,)))

    refused = await secured_service.request("POST", "/v1/queues/orders/purges", careful)
    done = await secured_service.request(
        "POST", "/v1/queues/orders/purges", await secured_service.key()
    )

    assert (refused.status_code, done.status_code) == (403, 200)
    outcomes = [
        entry.outcome for entry in await entries(secured_service, resource="queues/orders/purges")
    ]
    assert outcomes == ["done", "refused:forbidden"]


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/",
        "https://2130706433/",
        "https://[::ffff:169.254.169.254]/latest/meta-data",
        "https://10.0.0.1/",
        "http://example.com/",
        "https://example.com:6379/",
        "file:///etc/passwd",
        "gopher://example.com/",
    ],
)
async def test_api7_server_side_request_forgery(secured_service: SecuredService, url):
    key = await secured_service.key()
    config = {"source": "queue:orders", "url": url}

    answer = await secured_service.request("PUT", "/v1/webhooks/inside", key, json=config)

    assert answer.json()["errors"][0]["pointer"] == "/url"


async def test_api8_security_misconfiguration(secured_service: SecuredService):
    """Responses restrict browsers and foreign origins, and do not reveal internals."""
    key = await secured_service.key()
    here = await secured_service.request(
        "GET", "/v1/queues", key, headers={"origin": "https://evil.example"}
    )
    hot = await secured_service.request("POST", "/v1/queues/orders/receive", key, json={})
    shown = await secured_service.request("GET", "/v1/queues/orders", key)
    odd = await secured_service.request("GET", "/nothing/../here", key)

    assert {answer.headers["cache-control"] for answer in (here, hot, odd)} == {"no-store"}
    assert shown.headers["cache-control"] == "private, no-cache"
    for answer in (here, hot, shown, odd):
        assert not any(name.startswith("access-control") for name in answer.headers)
        assert not answer.headers["content-type"].startswith("text/html")
        assert "Traceback" not in answer.text
    for header in ("x-content-type-options:nosniff", "referrer-policy:no-referrer"):
        assert f"--header={header}" in PROTOCOLS
    preflight = await secured_service.request(
        "OPTIONS",
        "/v1/queues",
        headers={"origin": "https://evil.example", "access-control-request-method": "GET"},
    )
    assert preflight.status_code == 401


async def test_api8_configured_origin_is_allowed_without_cookies(redis_url, database_url):
    """Such pages send a key of their own; cookies are not accepted from them."""
    async with running_secured_service(redis_url, database_url) as secured_service:
        settings = Settings(auth="keys", cors_origins="https://app.example.com")
        key = await secured_service.key()
        async with (
            running_server(secured_service.storage, Limits(), settings) as server,
            httpx.AsyncClient(base_url=server.url) as client,
        ):
            ask = {"origin": "https://app.example.com", "access-control-request-method": "POST"}
            allowed = await client.options("/v1/queues/orders/receive", headers=ask)
            other = await client.options(
                "/v1/queues/orders/receive", headers={**ask, "origin": "https://evil.example"}
            )
            headers = {"origin": ask["origin"], "authorization": f"Bearer {key.token}"}
            hot = await client.post("/v1/queues/orders/receive", json={}, headers=headers)

    assert allowed.headers["access-control-allow-origin"] == "https://app.example.com"
    assert hot.headers["access-control-allow-origin"] == "https://app.example.com"
    assert "access-control-allow-credentials" not in {*allowed.headers, *hot.headers}
    assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize(
    "word", ["*", "https://*.example.com", "example.com", "https://a/b", "null"]
)
def test_api8_wildcard_origin_is_rejected(word):
    with pytest.raises(ValueError, match="not an origin"):
        Settings(cors_origins=word).cors_origins_list()


def test_api9_improper_inventory_management():
    """Every route is documented, except those of operators and sockets; there is one version.

    Pages of the dashboard are for people, and change nothing: all of them are GET.
    """
    app = create_app(Settings())
    documented = {
        (method.upper(), path)
        for path, methods in app.openapi()["paths"].items()
        for method in methods
    }

    served = {
        (method, re.sub(r":path\}", "}", route.path))
        for route in app.control.state.cold_routes
        for method in route.methods
        if not access.is_page(route.path)
    } | {(route.method, route.path) for route in app.dispatcher.routes}

    pages = [route for route in app.control.state.cold_routes if access.is_page(route.path)]
    assert {method for route in pages for method in route.methods} == {"GET"}
    assert {path for _, path in served - documented} == {
        "/metrics",
        "/metrics/per-object",
        "/v1/ws",
        "/docs",
        "/openapi.json",
        "/asyncapi.json",
        "/healthz",
        "/v1/sources/{source}/{token}",  # called by providers
    }
    assert {path.split("/")[1] for _, path in documented} == {"v1", "livez", "readyz"}


def test_api10_unsafe_consumption_of_apis():
    """Responses of webhook receivers and token issuers are bounded in size and time."""
    assert limits.JWKS_BYTES_MAX <= limits.MIB
    assert limits.JWKS_FETCH_MS <= 10 * limits.SECOND_MS
    assert limits.WEBHOOK_TIMEOUT_MS_MAX <= 2 * limits.MINUTE_MS
    assert limits.WEBHOOK_RESPONSE_BYTES_MAX <= 64 * limits.KIB


async def entries(
    secured_service: SecuredService, *, outcome: str | None = None, resource: str | None = None
) -> Any:
    """Wait for the newest log entries with an outcome; some are written in the background."""
    for _ in range(500):
        audit_logs = await secured_service.storage.audit_log.page(AuditFilter(resource=resource))
        if returned_audit_logs := [
            entry for entry in audit_logs if outcome in (None, entry.outcome)
        ]:
            return returned_audit_logs
        await asyncio.sleep(0.02)
    return []
