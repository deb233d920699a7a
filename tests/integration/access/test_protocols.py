"""Authentication on every protocol, and what a credential gives access to."""

import asyncio

import pytest
import redis
from msgspec.structs import replace

from api.auth.credentials import KeyAuthenticator
from api.auth.jwt import JwtIssuers
from storage.domain.access.credentials import NewSecret, Rights
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR, Effect, Grant, Principal
from storage.domain.clock import ManualClock, SystemClock
from storage.domain.errors import Unauthenticated
from storage.domain.names import QueueName
from storage.domain.queues.queue import QueueSpec
from storage.domain.quotas import NO_QUOTAS
from storage.redis.keys import STORE_KEY
from tests.conditions import eventually
from tests.databases import nobody_connects
from tests.secured_service import ADMIN_RIGHTS, SecuredService

pytestmark = pytest.mark.one_store


# Without a credential


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/queues"),
        ("POST", "/v1/queues/orders/messages"),
        ("GET", "/v1/streams/clicks/records"),
        ("GET", "/metrics"),
        ("PUT", "/v1/queues/more"),
    ],
)
async def test_request_without_credential_returns_no_data(
    secured_service: SecuredService, method, path
):
    answer = await secured_service.request(method, path, json={} if method != "GET" else None)

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["code"] == "unauthenticated"


async def test_health_checks_need_no_credential(secured_service: SecuredService):
    assert (await secured_service.request("GET", "/livez")).status_code == 200


@pytest.mark.parametrize(
    "word", ["-", "msk_", "nonsense", "msk_" + "0" * 50, "mst_" + "0" * 43, "a.b.c", "x" * 20_000]
)
async def test_malformed_credential_is_rejected(secured_service: SecuredService, word):
    answer = await secured_service.request(
        "GET", "/v1/queues", headers={"authorization": f"Bearer {word}"}
    )

    assert answer.status_code == 401


async def test_known_id_with_wrong_secret_is_rejected(secured_service: SecuredService):
    mine, other = await secured_service.key(), await secured_service.key()
    forged = mine.token[: len("msk_") + 13] + other.token[len("msk_") + 13 :]

    answer = await secured_service.request(
        "GET", "/v1/queues", headers={"authorization": f"Bearer {forged}"}
    )

    assert answer.status_code == 401


# Keys


@pytest.mark.parametrize("header", ["Bearer", "bearer", "X-API-Key"])
async def test_key_authenticates_on_native_protocols(secured_service: SecuredService, header):
    key = await secured_service.key()
    named = header == "X-API-Key"
    headers = {"x-api-key": key.token} if named else {"authorization": f"{header} {key.token}"}

    sent = await secured_service.request(
        "POST", "/v1/queues/orders/messages", headers=headers, json={"body": "a"}
    )
    listed = await secured_service.request("GET", "/v1/queues", headers=headers)

    assert (sent.status_code, listed.status_code) == (201, 200)


async def test_revoked_key_is_rejected(secured_service: SecuredService):
    key = await secured_service.key()
    assert (await secured_service.request("GET", "/v1/queues", key)).status_code == 200

    await secured_service.storage.credentials.revoke(LOCAL_ADMINISTRATOR, key.id)

    assert (await secured_service.request("GET", "/v1/queues", key)).status_code == 401


async def test_cached_key_is_rejected_after_expiry(secured_service: SecuredService):
    clock = ManualClock(SystemClock().now_ms())
    authenticator = KeyAuthenticator(lambda: secured_service.storage, JwtIssuers(()), clock)
    expiring = await secured_service.key(
        replace(ADMIN_RIGHTS, expires_at_ms=clock.now_ms() + 10_000)
    )
    shown = {b"authorization": f"Bearer {expiring.token}".encode()}
    for _ in range(2):
        await authenticator.authenticate(shown)

    clock.advance(ms=9_999)
    assert (await authenticator.authenticate(shown)).credential == expiring.id

    clock.advance(ms=1)
    with pytest.raises(Unauthenticated):
        await authenticator.authenticate(shown)


async def test_key_survives_database_outage_until_catalog_changes(
    secured_service: SecuredService, redis_url, database_url
):
    """Then it may have been revoked by a process that Postgres answers (ADR 0079)."""
    key = await secured_service.key()

    async def send() -> int:
        answer = await secured_service.request(
            "POST", "/v1/queues/orders/messages", key, json={"body": "a"}
        )
        return int(answer.status_code)

    assert await send() == 201
    with nobody_connects(database_url):
        await asyncio.sleep(0.2)  # the loss of the connection is noticed
        away = await send()
        with redis.Redis.from_url(redis_url) as client:
            client.hincrby(STORE_KEY, "catalog", 1)
        await eventually(send, 503)
    await eventually(send, 201)

    assert away == 201


async def test_grants_limit_operations_and_visibility(secured_service: SecuredService):
    await secured_service.storage.catalog.put_queue(QueueName("secret"), QueueSpec())
    allow = Grant(Effect.ALLOW, ("queue:send", "queue:list"), ("orders*",))
    key = await secured_service.key(Rights(grants=(allow,)))

    sent = await secured_service.request(
        "POST", "/v1/queues/orders/messages", key, json={"body": "a"}
    )
    response = await secured_service.request("POST", "/v1/queues/orders/receive", key, json={})
    there = await secured_service.request("GET", "/v1/queues/secret", key)
    missing = await secured_service.request("GET", "/v1/queues/missing", key)
    listed = await secured_service.request("GET", "/v1/queues", key)

    assert (sent.status_code, response.status_code) == (201, 403)
    assert (there.status_code, missing.status_code) == (403, 403)
    same = [
        one.json()["detail"].replace(name, "")
        for one, name in ((there, "secret"), (missing, "missing"))
    ]
    assert same[0] == same[1]
    assert [one["name"] for one in listed.json()["items"]] == ["orders"]


async def test_dead_letter_queue_requires_send_permission(secured_service: SecuredService):
    await secured_service.storage.catalog.put_queue(QueueName("payroll"), QueueSpec())
    allow = Grant(Effect.ALLOW, ("queue:*",), ("orders*",))
    key = await secured_service.key(Rights(grants=(allow,)))
    aimed = {"dead_letters": {"queue": "payroll", "receives_max": 1}}

    made = await secured_service.request("PUT", "/v1/queues/orders-eu", key, json=aimed)
    await secured_service.request("PUT", "/v1/queues/orders-eu", key, json={})
    changed = await secured_service.request("PATCH", "/v1/queues/orders-eu", key, json=aimed)

    assert (made.status_code, changed.status_code) == (403, 403)


async def test_route_requires_permission_for_both_queues(secured_service: SecuredService):
    allow = Grant(Effect.ALLOW, ("queue:*", "topic:*"), ("orders*",))
    key = await secured_service.key(Rights(grants=(allow,)))
    await secured_service.request("PUT", "/v1/topics/orders", key, json={})

    async def put(**config: object) -> int:
        path = "/v1/topics/orders/routes/r"
        response = await secured_service.request("PUT", path, key, json=config)
        return int(response.status_code)

    statuses = [
        await put(target={"queue": "payroll"}),
        await put(target={"queue": "orders"}, dead_letter_queue="payroll"),
        await put(target={"queue": "orders"}, dead_letter_queue="orders-dead"),
        await put(target={"queue": "orders"}, dead_letter_queue="payroll"),
    ]

    assert statuses == [403, 403, 201, 403]


@pytest.mark.parametrize(
    ("source", "action", "status"),
    [
        ("queue:jobs", "queue:receive", 201),
        ("queue:jobs", "queue:send", 403),
        ("stream:clicks", "stream:read", 201),
        ("stream:clicks", "stream:put", 403),
    ],
)
async def test_route_requires_permission_for_its_source(
    secured_service: SecuredService, source, action, status
):
    admin = await secured_service.key(ADMIN_RIGHTS)
    kind, _, name = source.partition(":")
    await secured_service.request("PUT", f"/v1/{kind}s/{name}", admin, json={})
    topic = Grant(Effect.ALLOW, ("topic:*",), (source,))
    target = Grant(Effect.ALLOW, ("queue:send",), ("work",))
    of_source = Grant(Effect.ALLOW, (action,), (name,))
    key = await secured_service.key(Rights(grants=(topic, target, of_source)))

    path, config = f"/v1/topics/{source}/routes/r", {"target": {"queue": "work"}}
    response = await secured_service.request("PUT", path, key, json=config)

    assert response.status_code == status


@pytest.mark.parametrize(
    ("action", "status"), [("stream:read", 422), ("stream:list", 403), ("stream:put", 403)]
)
async def test_view_requires_permission_to_read_its_stream(
    secured_service: SecuredService, action, status
):
    """With the permission the stream is looked up, and does not exist: no worker is needed."""
    view = Grant(Effect.ALLOW, ("view:*",), ("clicks-per-page",))
    stream = Grant(Effect.ALLOW, (action,), ("missing",))
    key = await secured_service.key(Rights(grants=(view, stream)))
    config = {"sql": "select count(*) as n from c", "from": {"c": {"stream": "missing"}}}

    path = "/v1/views/clicks-per-page"
    put = await secured_service.request("PUT", path, key, json=config)

    assert put.status_code == status
    pointers = [error["pointer"] for error in put.json().get("errors", ())]
    assert pointers == (["/from/c/stream"] if status == 422 else [])


@pytest.mark.parametrize(("action", "status"), [("view:read", 422), ("view:list", 403)])
async def test_view_requires_permission_to_read_another_view(
    secured_service: SecuredService, action, status
):
    """With the permission the other view is looked up, and does not exist."""
    own = Grant(Effect.ALLOW, ("view:*",), ("clicks-per-page",))
    stream = Grant(Effect.ALLOW, ("stream:read",), ("clicks",))
    other = Grant(Effect.ALLOW, (action,), ("totals",))
    key = await secured_service.key(Rights(grants=(own, stream, other)))
    relations = {"c": {"stream": "clicks"}, "t": {"view": "totals"}}
    config = {"sql": "select count(*) as n from c", "from": relations}

    path = "/v1/views/clicks-per-page"
    put = await secured_service.request("PUT", path, key, json=config)

    assert put.status_code == status
    pointers = [error["pointer"] for error in put.json().get("errors", ())]
    assert pointers == (["/from/t/view"] if status == 422 else [])


@pytest.mark.parametrize(
    ("sink", "action", "status"),
    [
        ({"stream": "changes"}, "stream:put", 422),
        ({"stream": "changes"}, "stream:read", 403),
        ({"queue": "changes"}, "queue:send", 422),
        ({"queue": "changes"}, "stream:put", 403),
    ],
)
async def test_view_requires_permission_to_write_to_its_sinks(
    secured_service: SecuredService, sink, action, status
):
    """With the permission the stream of the view is looked up, and does not exist."""
    view = Grant(Effect.ALLOW, ("view:*",), ("clicks-per-page",))
    stream = Grant(Effect.ALLOW, ("stream:read",), ("missing",))
    target = Grant(Effect.ALLOW, (action,), ("changes",))
    key = await secured_service.key(Rights(grants=(view, stream, target)))
    config = {"sql": "select count(*) as n from c", "from": {"c": {"stream": "missing"}}}

    path = "/v1/views/clicks-per-page"
    put = await secured_service.request("PUT", path, key, json={**config, "into": [sink]})

    assert put.status_code == status
    assert ("changes" in put.json()["detail"]) == (status == 403)


@pytest.mark.parametrize(
    ("missing", "status"),
    [
        *[(None, 404), ("job:manage", 403), ("view:read", 403)],
        *[("users", 403), ("totals", 403), ("clicks", 403)],
    ],
)
async def test_view_back_test_requires_permissions(
    secured_service: SecuredService, missing, status
):
    """Also on the streams of tables, and on views. With all of them the view is looked up, and does not exist."""
    needed = [
        ("job:manage", "clicks-per-page"),
        ("view:read", "clicks-per-page"),
        ("stream:read", "clicks"),
        ("stream:read", "users"),
        ("view:read", "totals"),
    ]
    grants = tuple(
        Grant(Effect.ALLOW, (action,), (name,))
        for action, name in needed
        if missing not in (action, name)
    )
    key = await secured_service.key(Rights(grants=grants))
    relations = {"c": {"stream": "clicks"}, "u": {"table": "users"}, "t": {"view": "totals"}}
    config = {"sql": "select count(*) as n from c", "from": relations}

    path = "/v1/views/clicks-per-page/backtests"
    started = await secured_service.request("POST", path, key, json=config)

    assert started.status_code == status


async def test_back_test_job_requires_two_permissions(secured_service: SecuredService):
    topics, reads, runs = (
        Grant(Effect.ALLOW, (action,), ("orders",))
        for action in ("topic:*", "topic:read", "job:manage")
    )
    owner = await secured_service.key(Rights(grants=(topics,)))
    await secured_service.request("PUT", "/v1/topics/orders", owner, json={})

    async def call(method: str, path: str, *grants: Grant) -> int:
        key = await secured_service.key(Rights(grants=grants))
        path = f"/v1/topics/orders/backtests/jobs{path}"
        body: dict[str, object] | None = {} if method == "POST" else None
        response = await secured_service.request(method, path, key, json=body)
        return int(response.status_code)

    statuses = [
        await call("POST", "", reads),
        await call("POST", "", runs),
        await call("POST", "", reads, runs),
        await call("GET", "/missing", runs),
        await call("GET", "/missing", reads),
    ]

    assert statuses == [403, 403, 202, 403, 404]


async def test_spread_requires_permission_for_every_member(secured_service: SecuredService):
    allow = Grant(Effect.ALLOW, ("queue:send", "stream:put", "topic:*"), ("orders*",))
    key = await secured_service.key(Rights(grants=(allow,)))
    await secured_service.request("PUT", "/v1/topics/orders", key, json={})

    async def put(*members: dict[str, str]) -> int:
        path = "/v1/topics/orders/routes/r"
        config = {"target": {"spread": [{"queue": "orders"}, *members]}}
        response = await secured_service.request("PUT", path, key, json=config)
        return int(response.status_code)

    statuses = [
        await put({"queue": "orders-2"}, {"queue": "payroll"}),
        await put({"stream": "payroll"}),
        await put({"topic": "payroll"}),
        await put({"queue": "orders-2"}, {"stream": "orders"}, {"topic": "orders-eu"}),
    ]

    assert statuses == [403, 403, 403, 201]


async def test_route_to_url_requires_permission_for_webhook(secured_service: SecuredService):
    topic = Grant(Effect.ALLOW, ("topic:*",), ("orders",))
    webhook = Grant(Effect.ALLOW, ("webhook:*",), ("route:orders.crm",))
    allowed = await secured_service.key(Rights(grants=(topic, webhook)))
    refused = await secured_service.key(Rights(grants=(topic,)))
    await secured_service.request("PUT", "/v1/topics/orders", allowed, json={})

    async def call(key: NewSecret, method: str, route: str, url: str) -> int:
        path, config = f"/v1/topics/orders/routes/{route}", {"target": {"url": url}}
        response = await secured_service.request(method, path, key, json=config)
        return int(response.status_code)

    statuses = [
        await call(refused, "PUT", "crm", "https://a.example/"),
        await call(allowed, "PUT", "other", "https://a.example/"),
        await call(allowed, "PUT", "crm", "https://a.example/"),
        await call(refused, "PATCH", "crm", "https://b.example/"),
        await call(refused, "PATCH", "crm", "https://a.example/"),
    ]

    assert statuses == [403, 403, 201, 403, 200]


# Namespaces


async def test_names_are_isolated_per_namespace(secured_service: SecuredService):
    await secured_service.storage.namespaces.put("tenant-a", NO_QUOTAS)
    everywhere = await secured_service.key(all_namespaces=True)
    tenant = await secured_service.key(by=Principal("root", "tenant-a", LOCAL_ADMINISTRATOR.policy))
    there = {"millstream-namespace": "tenant-a"}

    before = await secured_service.request("GET", "/v1/queues/orders", tenant)
    made = await secured_service.request(
        "PUT", "/v1/queues/theirs", everywhere, json={}, headers=there
    )
    seen = await secured_service.request("GET", "/v1/queues", tenant)
    elsewhere = await secured_service.request(
        "GET", "/v1/queues", tenant, headers={"millstream-namespace": "default"}
    )

    assert before.status_code == 404
    assert made.status_code == 201
    assert [item["name"] for item in seen.json()["items"]] == ["theirs"]
    assert elsewhere.status_code == 403


# Sessions


async def test_browser_logs_in_with_key_in_body(secured_service: SecuredService):
    key = await secured_service.key()

    right = await secured_service.request("POST", "/v1/sessions", json={"api_key": key.token})
    wrong = await secured_service.request("POST", "/v1/sessions", json={"api_key": "msk_nonsense"})
    nothing = await secured_service.request("POST", "/v1/sessions", json={})
    cookie = {"cookie": right.headers["set-cookie"].partition(";")[0]}
    listed = await secured_service.request("GET", "/v1/queues", headers=cookie)
    out = await secured_service.request("DELETE", "/v1/sessions", headers=cookie)
    after = await secured_service.request("GET", "/v1/queues", headers=cookie)

    assert [one.status_code for one in (right, wrong, nothing)] == [201, 401, 401]
    assert [one.status_code for one in (listed, out, after)] == [200, 204, 401]


async def test_session_cookie_is_same_origin_only(secured_service: SecuredService):
    key = await secured_service.key()
    logged_in = await secured_service.storage.credentials.log_in(key.token)
    assert logged_in is not None
    cookie = {"cookie": f"ms_session={logged_in.token}"}
    host = secured_service.url.removeprefix("http://")

    own = await secured_service.request(
        "GET", "/v1/queues", headers=cookie | {"sec-fetch-site": "same-origin"}
    )
    same = await secured_service.request(
        "GET", "/v1/queues", headers=cookie | {"origin": f"http://{host}"}
    )
    cross = await secured_service.request(
        "GET", "/v1/queues", headers=cookie | {"sec-fetch-site": "cross-site"}
    )
    other = await secured_service.request(
        "GET", "/v1/queues", headers=cookie | {"origin": "https://evil.example"}
    )
    link = await secured_service.request(
        "GET",
        "/v1/queues",
        headers=cookie | {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    )
    await secured_service.storage.credentials.log_out(logged_in.token)
    after = await secured_service.request("GET", "/v1/queues", headers=cookie)

    assert [one.status_code for one in (own, same, link)] == [200] * 3
    assert [one.status_code for one in (cross, other)] == [403] * 2
    assert after.status_code == 401
