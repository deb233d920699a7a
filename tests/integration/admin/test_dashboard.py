"""The dashboard: logins, visibility of contents and actions, and response headers."""

import asyncio
import re
from contextlib import nullcontext

import pytest

from api.admin.rendering import CONTENT_SECURITY_POLICY
from api.nouns import NOUNS
from storage.domain.access.audit import AuditFilter
from storage.domain.access.credentials import Rights
from storage.domain.access.permissions import Effect, Grant, Role
from storage.domain.names import QueueName
from storage.domain.queues.dead_letter_origin import DeadLetterOrigin
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.queue import QueueSpec
from storage.domain.quotas import NO_QUOTAS
from storage.settings import StorageSettings
from tests.secured_service import SecuredService, running_secured_service
from tests.view_worker import view_worker

pytestmark = pytest.mark.one_store

ORDERS = QueueName("orders")
VIEWER = Rights(roles=(Role.VIEWER,))
OPERATOR = Rights(roles=(Role.OPERATOR,))
VIEW_SQL = "select page, count(*) as clicks from c group by page"
HOSTILE = b"</pre><script>alert(1)</script>"


@pytest.fixture
async def service(redis_url, database_url):
    async with running_secured_service(redis_url, database_url) as found:
        yield found


async def cookie_of(service: SecuredService, rights: Rights = OPERATOR) -> dict[str, str]:
    key = await service.key(rights)
    made = await service.request("POST", "/v1/sessions", json={"api_key": key.token})
    return {"cookie": made.headers["set-cookie"].split(";")[0]}


async def test_anonymous_visitor_is_sent_to_login_page_and_back(service):
    answer = await service.request("GET", "/ui/queues/orders?tab=1&ns=x")
    login = await service.request("GET", answer.headers["location"])

    assert answer.status_code == 303
    assert answer.headers["location"] == "/ui/login?next=%2Fui%2Fqueues%2Forders%3Ftab%3D1%26ns%3Dx"
    assert login.status_code == 200
    assert "data-login" in login.text
    assert "orders" not in login.text


async def test_anonymous_visitor_gets_only_assets_of_login_page(service):
    login = await service.request("GET", "/ui/login")

    paths = set(re.findall(r'(?:src|href)="(/[^"]+)"', login.text))
    responses = [await service.request("GET", path) for path in paths if "/static/" in path]

    assert len(responses) >= 4
    assert {response.status_code for response in responses} == {200}
    assert all("immutable" in response.headers["cache-control"] for response in responses)
    for path in ("/ui/static/x/%2e%2e/assets.py", "/ui/static/x/vendor/VENDOR.toml"):
        assert (await service.request("GET", path)).status_code == 404


async def test_post_is_rejected_as_page(service):
    answer = await service.request("POST", "/ui/queues")

    assert answer.status_code == 401


async def test_every_page_has_strict_content_security_policy(service):
    cookie = await cookie_of(service)

    for path in ("/ui", "/ui/queues", "/ui/queues/nowhere", "/ui/nothing", "/ui/login"):
        headers = (await service.request("GET", path, headers=cookie)).headers
        assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY, path
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"


async def test_error_is_rendered_as_page(service):
    cookie = await cookie_of(service, VIEWER)

    missing = await service.request("GET", "/ui/queues/nowhere", headers=cookie)
    nothing = await service.request("GET", "/ui/no/such/page", headers=cookie)
    forbidden = await service.request("GET", "/ui/queues/orders/messages", headers=cookie)
    senseless = await service.request("GET", "/ui/queues?start=-1", headers=cookie)

    answers = (missing, nothing, forbidden, senseless)
    assert [one.status_code for one in answers] == [404, 404, 403, 400]
    assert all(one.headers["content-type"].startswith("text/html") for one in answers)


async def test_failing_page_hides_cause(service, monkeypatch):
    async def fail(*_, **__):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(service.storage.search, "queue_names", fail)

    answer = await service.request("GET", "/ui/queues", headers=await cookie_of(service))

    assert answer.status_code == 500
    assert answer.headers["content-type"].startswith("text/html")
    assert "log contains the request id" in answer.text
    assert "secret detail" not in answer.text


async def test_only_ended_sessions_are_audited_as_login_attempts(service):
    await service.request("GET", "/ui")
    before = await service.storage.audit_log.page(AuditFilter())
    await service.request("GET", "/ui", headers={"cookie": "ms_session=mss_" + "a" * 49})

    for _ in range(500):  # it is recorded in the background
        audit_logs = await service.storage.audit_log.page(AuditFilter())
        if audit_logs != before:
            break
        await asyncio.sleep(0.01)

    assert len(audit_logs) == len(before) + 1
    assert audit_logs[0].call.operation == "log_in"


async def test_viewer_sees_no_forbidden_actions(service):
    viewer, operator = await cookie_of(service, VIEWER), await cookie_of(service)

    seen = (await service.request("GET", "/ui/queues/orders", headers=viewer)).text
    worked = (await service.request("GET", "/ui/queues/orders", headers=operator)).text

    assert "Read-only" in seen
    for action in ("/purges", 'data-method="DELETE"', 'data-method="PATCH"', "/ui/keys"):
        assert action not in seen
    assert "/purges" in worked
    assert "/ui/keys" not in worked


async def test_list_shows_only_what_caller_may_see(service):
    await service.storage.catalog.put_queue(QueueName("secret-plans"), QueueSpec())
    rights = Rights(grants=(Grant(Effect.ALLOW, ("queue:list",), ("ord*",)),))
    cookie = await cookie_of(service, rights)

    listed = (await service.request("GET", "/ui/queues", headers=cookie)).text
    text = (await service.request("GET", "/ui/search?q=e", headers=cookie)).text
    hidden = await service.request("GET", "/ui/queues/secret-plans", headers=cookie)
    absent = await service.request("GET", "/ui/queues/nothing-there", headers=cookie)

    assert "orders" in listed
    assert "secret-plans" not in listed + text
    assert hidden.status_code == absent.status_code == 403


async def links_of(service: SecuredService, cookie: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return the paths of the navigation and those of the pages in the palette."""
    page = (await service.request("GET", "/ui", headers=cookie)).text
    palette = (await service.request("GET", "/ui/search", headers=cookie)).text
    return re.findall(r'href="([^"]+)" data-go', page), re.findall(r'href="([^"]+)"', palette)


@pytest.mark.parametrize("role", list(Role))
async def test_palette_lists_the_pages_of_the_navigation(service, role):
    """The palette lacked sources, and had namespaces, as the navigation sockets, for those who got a 403."""
    cookie = await cookie_of(service, Rights(roles=(role,)))

    navigation, palette = await links_of(service, cookie)
    pages = [await service.request("GET", path, headers=cookie) for path in navigation]

    assert navigation == palette
    assert {page.status_code for page in pages} == {200}


async def test_navigation_of_an_administrator_has_all_pages(service):
    key = await service.key(all_namespaces=True)
    made = await service.request("POST", "/v1/sessions", json={"api_key": key.token})

    navigation, palette = await links_of(
        service, {"cookie": made.headers["set-cookie"].split(";")[0]}
    )

    assert navigation == palette == [noun.page.path for noun in NOUNS if noun.page]


async def test_palette_finds_objects_of_each_noun_by_name(service, redis_url, database_url):
    """Webhooks and sources were not found."""
    stores = StorageSettings(redis_url=redis_url, database_url=database_url)
    own = await service.key()
    webhook = {"provider": "github", "secrets": ["It's a Secret to Everybody"]}
    for path, body in (
        ("queues/needle-q", {}),
        ("streams/needle-s", {}),
        ("topics/needle-t", {}),
        ("topics/needle-t/routes/billing", {"target": {"queue": "needle-q"}}),
        ("groups/needle-g", {"stream": "needle-s"}),
        ("webhooks/needle-w", {"source": "queue:needle-q", "url": "https://example.com/"}),
        ("sources/needle-i", {"webhook": webhook, "into": {"queue": "needle-q"}}),
        ("views/needle-v", {"sql": VIEW_SQL, "from": {"c": {"stream": "needle-s"}}}),
        ("mirrors/needle-m", {"from": {"url": "https://example.com"}, "streams": ["*"]}),
    ):
        async with view_worker(stores) if path.startswith("views") else nullcontext():
            made = await service.request("PUT", f"/v1/{path}", own, json=body)
        assert made.status_code == 201, made.text

    text = (
        await service.request("GET", "/ui/search?q=needle", headers=await cookie_of(service))
    ).text

    assert re.findall(r'href="/ui/(\w+)/needle-\w"', text) == [
        noun.plural for noun in NOUNS if noun.is_granted_by_name
    ]


@pytest.mark.parametrize(
    ("words", "routes"),
    [
        ("orders/", ["orders/routes/billing", "orders/routes/crm"]),
        ("orders/bi", ["orders/routes/billing"]),
        ("other/bi", []),
        ("no such name!/bi", []),
        ("orders/no such prefix!", []),
    ],
)
async def test_palette_finds_routes_by_topic(service, words, routes):
    own = await service.key()
    for path, body in (
        ("topics/orders", {}),
        ("topics/orders/routes/billing", {"target": {"queue": "billing"}}),
        ("topics/orders/routes/crm", {"target": {"queue": "crm"}}),
    ):
        made = await service.request("PUT", f"/v1/{path}", own, json=body)
        assert made.status_code == 201, made.text

    cookie = await cookie_of(service)
    answer = await service.request("GET", "/ui/search", headers=cookie, params={"q": words})

    assert re.findall(r'href="/ui/topics/([^"]+)"', answer.text) == routes


async def test_namespace_page_is_limited_to_its_own_administrators(service):
    await service.storage.namespaces.put("acme", NO_QUOTAS)
    await service.storage.catalog.put_queue(QueueName("theirs", "acme"), QueueSpec())
    own = await cookie_of(service, Rights(roles=(Role.ADMIN,)))
    key = await service.key(all_namespaces=True)
    made = await service.request("POST", "/v1/sessions", json={"api_key": key.token})
    everywhere = {"cookie": made.headers["set-cookie"].split(";")[0]}

    refused = await service.request("GET", "/ui/queues?ns=acme", headers=own)
    shown = await service.request("GET", "/ui/queues?ns=acme", headers=everywhere)

    assert refused.status_code == 403
    assert refused.headers["content-type"].startswith("text/html")
    assert "theirs" in shown.text
    assert "/ui/queues/theirs?ns=acme" in shown.text
    assert 'data-namespace="acme"' in shown.text


async def test_hostile_body_is_escaped_and_downloaded_as_file(service):
    [sent] = await service.storage.queues.send(ORDERS, [NewMessage(HOSTILE)])
    cookie, path = await cookie_of(service), f"/ui/queues/orders/messages/{sent.message_id}"

    page = await service.request("GET", path, headers=cookie)
    listed = await service.request("GET", "/ui/queues/orders/messages", headers=cookie)
    file = await service.request("GET", f"{path}/body", headers=cookie)

    assert "<script>alert" not in page.text + listed.text
    assert "&lt;script&gt;alert(1)" in page.text
    assert file.content == HOSTILE
    assert file.headers["content-type"] == "application/octet-stream"
    assert file.headers["content-disposition"].startswith("attachment")


async def test_message_page_shows_why_it_was_dead_lettered(service):
    origin = DeadLetterOrigin(
        source="queue:work",
        reason="<b>stolen</b>",
        died_at_ms=0,
        failures=2,
        crash_count=1,
        last_failure_reason="no card",
        details="busy",
    )
    message = NewMessage(b"x", system=(origin.to_header(),))
    [sent] = await service.storage.queues.send(ORDERS, [message])

    path = f"/ui/queues/orders/messages/{sent.message_id}"
    page = await service.request("GET", path, headers=await cookie_of(service))

    assert "Dead-lettered by queue:work" in page.text
    assert "&lt;b&gt;stolen" in page.text
    assert "2 failures · 1 lease expired" in page.text
    assert "no card" in page.text
    assert "busy" in page.text


async def test_search_looks_beyond_one_page(service):
    await service.storage.queues.send(ORDERS, [NewMessage(b"hay")] * 900 + [NewMessage(b"needle")])
    cookie = await cookie_of(service)

    response = await service.request("GET", "/ui/queues/orders/messages?q=needle", headers=cookie)
    while received := await service.storage.queues.receive(ORDERS, messages_max=1_000):
        verdicts = [Settlement(message.receipt_handle, SettleAction.REJECT) for message in received]
        await service.storage.queues.settle(ORDERS, verdicts)
    dead = await service.request("GET", "/ui/queues/orders/dead-letters?q=needle", headers=cookie)

    assert re.findall(r'id="m-(\d+)"', response.text) == ["900"]
    assert re.findall(r'id="d-(\d+)"', dead.text) == ["900"]


async def test_page_never_shows_key(service):
    key = await service.key()
    cookie = await cookie_of(service, Rights(roles=(Role.ADMIN,)))

    pages = [
        (await service.request("GET", path, headers=cookie)).text
        for path in ("/ui/keys", f"/ui/keys/{key.id}", "/ui/queues/orders/code", "/ui/audit")
    ]

    secret = key.token.split("_")[2]
    assert key.id in pages[0]
    assert all(secret not in page for page in pages)


async def test_totals_are_hidden_from_caller_limited_to_some_queues(service):
    await service.storage.catalog.put_queue(QueueName("secret-plans"), QueueSpec())
    await service.storage.queues.send(QueueName("secret-plans"), [NewMessage(b"x")] * 7)
    await service.storage.time_series.sample()
    rights = Rights(grants=(Grant(Effect.ALLOW, ("queue:list",), ("ord*",)),))

    part = (await service.request("GET", "/ui", headers=await cookie_of(service, rights))).text
    whole = (await service.request("GET", "/ui", headers=await cookie_of(service, VIEWER))).text

    assert "7 messages" in whole
    assert "Totals" in whole
    assert "Totals" not in part
    assert "Hot store" not in part


async def test_deployment_settings_require_deployment_administrator(service):
    cookie = await cookie_of(service, Rights(roles=(Role.ADMIN,)))

    answer = await service.request("GET", "/ui/system/settings", headers=cookie)

    assert answer.status_code == 403
