"""Webhooks with an OAuth client: token requests, validity of tokens, failures and secrets."""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator
from urllib.parse import parse_qs

import psycopg
import pytest
from msgspec.structs import replace

from consumers.webhooks.manual_delivery import Requested
from storage.domain import limits
from storage.domain.access.oauth import ClientAuth, OAuthClient, WebhookCredentials
from storage.domain.errors import ValidationFailed
from storage.domain.queues.message import NewMessage
from storage.domain.webhooks import AttemptOutcome, DeliveryStatus
from tests.integration.webhooks.conftest import ALLOW, HOOK, ORDERS
from tests.webhook_receiver import (
    Behaviour,
    Receiver,
    close,
    hang,
    reset,
    respond_endlessly,
    respond_with,
    respond_with_garbage,
    running_receiver,
)

pytestmark = pytest.mark.one_store

SECRET = "open sesame+/%"


def token(value: str = "t1", **fields: object) -> Behaviour:
    """Respond with an access token."""
    body = {"access_token": value, "token_type": "Bearer", "expires_in": 3600, **fields}
    return respond_with(200, json.dumps(body).encode())


@pytest.fixture
async def endpoint() -> AsyncGenerator[Receiver]:
    """A token endpoint, which gives out t1, t2 and so on."""
    async with running_receiver() as endpoint:
        endpoint.behaviours = [token(f"t{n}") for n in range(1, 10)]
        yield endpoint


def credentials(endpoint: Receiver, **changes: object) -> WebhookCredentials:
    client = OAuthClient(token_url=endpoint.url, client_id="shop", client_secret=SECRET)
    return WebhookCredentials(oauth=replace(client, **changes))


async def send(storage, count: int = 1) -> None:
    await storage.queues.send(ORDERS, [NewMessage(b"%d" % n) for n in range(count)])


def tokens(receiver: Receiver) -> list[str]:
    """Return the access tokens of the requests."""
    return [
        request.headers["authorization"].removeprefix("Bearer ") for request in receiver.requests
    ]


# ── Token requests ──


async def test_delivery_has_token_of_client(bench, storage, receiver, endpoint):
    client = credentials(endpoint, scope="read write", parameters={"audience": "a&b"})
    await bench.queue_hook(credentials=client, headers=(("x-team", "crm"),))
    await send(storage)

    await (await bench.queue_source()).round()

    [delivery] = receiver.requests
    [fetch] = endpoint.requests
    assert delivery.headers["authorization"] == "Bearer t1"
    assert delivery.headers["x-team"] == "crm"
    assert fetch.headers["content-type"] == "application/x-www-form-urlencoded"
    assert parse_qs(fetch.body.decode()) == {
        "grant_type": ["client_credentials"],
        "scope": ["read write"],
        "audience": ["a&b"],
    }
    encoded = base64.b64encode(b"shop:open+sesame%2B%2F%25").decode()
    assert fetch.headers["authorization"] == f"Basic {encoded}"


async def test_client_authenticates_in_body(bench, storage, receiver, endpoint):
    await bench.queue_hook(credentials=credentials(endpoint, client_auth=ClientAuth.BODY))
    await send(storage)

    await (await bench.queue_source()).round()

    [fetch] = endpoint.requests
    form = parse_qs(fetch.body.decode())
    assert (form["client_id"], form["client_secret"]) == (["shop"], [SECRET])
    assert "authorization" not in fetch.headers
    assert tokens(receiver) == ["t1"]


async def test_concurrent_deliveries_share_one_token(bench, storage, receiver, endpoint):
    await bench.queue_hook(credentials=credentials(endpoint), in_flight_max=10)
    source = await bench.queue_source()

    for _ in range(2):
        await send(storage, 10)
        await source.round()

    assert tokens(receiver) == ["t1"] * 20
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("fields", "valid_ms"),
    [
        ({"expires_in": 3600}, 3_570_000),
        ({"expires_in": "3600"}, 3_570_000),
        ({"expires_in": 100}, 90_000),
        ({"expires_in": 10**12}, limits.WEBHOOK_TOKEN_AGE_MS_MAX - 30_000),
        ({"expires_in": None}, limits.WEBHOOK_TOKEN_AGE_MS_DEFAULT - 30_000),
    ],
)
async def test_token_is_renewed_before_its_end(
    bench, storage, receiver, endpoint, clock, fields, valid_ms
):
    endpoint.behaviours[0] = token("t1", **fields)
    await bench.queue_hook(credentials=credentials(endpoint))
    source = await bench.queue_source()

    for advance_ms in (0, valid_ms - 1, 1):
        clock.advance(advance_ms)
        await send(storage)
        await source.round()

    assert tokens(receiver) == ["t1", "t1", "t2"]


@pytest.mark.parametrize("expires_in", [0, -5])
async def test_token_without_validity_is_used_once(bench, storage, receiver, endpoint, expires_in):
    endpoint.behaviours[0] = token("t1", expires_in=expires_in)
    await bench.queue_hook(credentials=credentials(endpoint))
    source = await bench.queue_source()

    for _ in range(2):
        await send(storage)
        await source.round()

    assert tokens(receiver) == ["t1", "t2"]


# ── Refused tokens ──


def refuse_after(receiver, requests: int) -> Behaviour:
    """Answer 401 when so many requests have come, so that none of them has a newer token."""

    async def refuse(writer: asyncio.StreamWriter) -> None:
        await receiver.until(requests)
        await respond_with(401)(writer)

    return refuse


async def test_refused_token_is_fetched_anew_once(bench, storage, receiver, endpoint):
    receiver.behaviours = [respond_with(401)]
    await bench.queue_hook(credentials=credentials(endpoint))
    await send(storage)

    await (await bench.queue_source()).round()

    assert tokens(receiver) == ["t1", "t2"]
    [delivery] = await bench.deliveries()
    assert (delivery.status, delivery.attempts) == (DeliveryStatus.DELIVERED, 1)
    assert len({request.event_id for request in receiver.requests}) == 1


async def test_concurrent_refusals_fetch_one_token(bench, storage, receiver, endpoint):
    """Ten deliveries whose token was revoked must not fetch ten tokens."""
    receiver.behaviours = [refuse_after(receiver, 10)] * 10
    await bench.queue_hook(credentials=credentials(endpoint), in_flight_max=10)
    await send(storage, 10)

    await (await bench.queue_source()).round()

    assert sorted(tokens(receiver)) == ["t1"] * 10 + ["t2"] * 10
    assert len(endpoint.requests) == 2


async def test_late_refusal_keeps_newer_token(bench, storage, receiver, endpoint):
    """A refusal of the former token must not end the one in use."""
    receiver.behaviours = [refuse_after(receiver, 2), refuse_after(receiver, 3)]
    await bench.queue_hook(credentials=credentials(endpoint), in_flight_max=2)
    await send(storage, 2)

    await (await bench.queue_source()).round()

    assert tokens(receiver) == ["t1", "t1", "t2", "t2"]
    assert len(endpoint.requests) == 2


async def test_second_refusal_is_failure(bench, storage, receiver, endpoint, clock):
    receiver.default_behaviour = respond_with(401)
    await bench.queue_hook(credentials=credentials(endpoint), retry_delays_ms=(0,))
    await send(storage)
    source = await bench.queue_source()

    await source.round()
    await source.round()

    assert tokens(receiver) == ["t1", "t2", "t2", "t3"]
    [delivery] = await bench.deliveries()
    outcomes = [attempt.outcome for attempt in delivery.last_attempts]
    assert outcomes == [AttemptOutcome.CLIENT_ERROR] * 2
    assert delivery.status is DeliveryStatus.FAILED


# ── Failures of the token endpoint ──

ERROR = b'{"error": "invalid_client", "error_description": "open sesame"}'
NO_TOKEN = "200: no valid access_token in the response"
FAILURES: dict[str, tuple[Behaviour, str]] = {
    "refused": (respond_with(401, ERROR), "401: invalid_client"),
    "strange error": (respond_with(400, b'{"error": "Open <sesame>"}'), "400"),
    "broken": (respond_with(500, b"broken"), "500"),
    "redirect": (respond_with(302, location="http://127.0.0.1:1/"), "302"),
    "no token": (respond_with(200, b"{}"), NO_TOKEN),
    "list": (respond_with(200, b"[1]"), NO_TOKEN),
    "line break": (token("t\r\nx: y"), NO_TOKEN),
    "too long": (token("t" * 9000), NO_TOKEN),
    "other type": (token(token_type="mac"), "200: the token_type must be Bearer"),
    "endless": (respond_endlessly, NO_TOKEN),
    "timeout": (hang, "timed out"),
    "reset": (reset, "connection lost"),
    "closed": (close, "invalid HTTP response"),
    "garbage": (respond_with_garbage, "invalid HTTP response"),
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_failure_of_token_endpoint_is_failed_attempt(
    bench, storage, receiver, endpoint, counters, failure
):
    behaviour, reason = FAILURES[failure]
    endpoint.behaviours = [behaviour]
    endpoint.default_behaviour = token()
    await bench.queue_hook(
        credentials=credentials(endpoint), timeout_ms=300, retry_delays_ms=(0, 0)
    )
    await send(storage)
    source = await bench.queue_source()

    await source.round()
    assert receiver.requests == []
    await source.round()

    [delivery] = await bench.deliveries()
    failed, delivered = delivery.last_attempts
    assert (failed.outcome, failed.status) == (AttemptOutcome.CREDENTIALS, None)
    assert failed.error.startswith(f"No access token: {reason}")
    assert "sesame" not in repr(delivery)
    assert delivered.succeeded
    assert counters.outcomes == [AttemptOutcome.CREDENTIALS, AttemptOutcome.DELIVERED]


async def test_delivery_waits_for_retry_after_of_endpoint(
    bench, storage, receiver, endpoint, clock
):
    endpoint.behaviours = [respond_with(429, retry_after="60"), token()]
    await bench.queue_hook(credentials=credentials(endpoint), retry_delays_ms=(0,))
    await send(storage)
    source = await bench.queue_source()

    await source.round()
    assert await source.round() == 0
    clock.advance(60_000)
    await source.round()

    assert tokens(receiver) == ["t1"]


async def test_failing_token_endpoint_opens_breaker(bench, storage, receiver, endpoint):
    endpoint.behaviours = []
    endpoint.default_behaviour = respond_with(500)
    await bench.queue_hook(credentials=credentials(endpoint), in_flight_max=1)
    await send(storage, 20)
    source = await bench.queue_source()

    while await source.round():
        pass

    assert len(endpoint.requests) == limits.WEBHOOK_BREAKER_FAILURES
    assert receiver.requests == []


async def test_token_endpoint_at_private_address_is_blocked(bench, storage, receiver):
    async def private(host: str, _: int) -> list[str]:
        return ["127.0.0.1"] if host == "127.0.0.1" else ["10.0.0.1"]

    client = OAuthClient(
        token_url="https://login.example/token", client_id="shop", client_secret=SECRET
    )
    await bench.queue_hook(credentials=WebhookCredentials(oauth=client))
    await send(storage)

    await (await bench.queue_source(resolver=private)).round()

    [delivery] = await bench.deliveries()
    [attempt] = delivery.last_attempts
    assert attempt.outcome is AttemptOutcome.CREDENTIALS
    assert "does not send requests to" in attempt.error
    assert receiver.requests == []


async def test_sender_that_closes_ends_fetch_in_progress(bench, storage, endpoint):
    endpoint.behaviours = [hang]
    await bench.queue_hook(credentials=credentials(endpoint), timeout_ms=60_000)
    await send(storage)
    hook = await bench.endpoint()
    attempt = asyncio.create_task(hook._sender._tokens.get())
    await endpoint.until(1)

    await hook.close()

    with pytest.raises(asyncio.CancelledError):
        await attempt


# ── Requested deliveries, and definitions ──


async def test_requested_delivery_has_token(bench, storage, clock, receiver, endpoint):
    await bench.queue_hook(credentials=credentials(endpoint))

    attempt = await Requested(storage, ALLOW, clock=clock).test(HOOK)

    assert attempt.succeeded
    assert tokens(receiver) == ["t1"]


async def test_changed_secret_is_used_for_next_token(bench, storage, receiver, endpoint):
    await bench.queue_hook(credentials=credentials(endpoint))
    deliverer = bench.deliverer()
    await deliverer.heartbeat()
    await send(storage)
    await receiver.until(1)

    changed = credentials(endpoint, client_auth=ClientAuth.BODY, client_secret="other")
    await bench.hook("queue:orders", credentials=changed)
    await deliverer.heartbeat()
    await send(storage)
    await receiver.until(2)

    await deliverer._leave()
    assert tokens(receiver) == ["t1", "t2"]
    assert parse_qs(endpoint.requests[1].body.decode())["client_secret"] == ["other"]


async def test_client_secret_is_encrypted_and_never_returned(
    bench, storage, endpoint, database_url
):
    made = await bench.queue_hook(credentials=credentials(endpoint), headers=(("a", "1"),))
    again = await bench.hook("queue:orders", credentials=credentials(endpoint))
    hidden = credentials(endpoint, client_secret=None)
    left_out = await bench.hook("queue:orders", credentials=hidden)
    await storage.webhooks.pause(HOOK, paused=True)
    served = await storage.webhooks.opened(HOOK)

    with psycopg.connect(database_url) as connection:
        rows = connection.execute("select * from webhooks").fetchall()
    assert "sesame" not in repr(rows)
    assert [one.version for one in (made, again, left_out)] == [1, 1, 1]
    assert made.spec.credentials == (await storage.webhooks.get(HOOK)).spec.credentials == hidden
    assert served.webhook.spec.credentials == credentials(endpoint)
    assert served.webhook.spec.headers == (("a", "1"),)


async def test_credentials_are_removed(bench, storage, receiver, endpoint):
    await bench.queue_hook(credentials=credentials(endpoint), headers=(("a", "1"),))
    changed = await bench.hook("queue:orders")
    served = await storage.webhooks.opened(HOOK)

    assert (changed.version, changed.spec.credentials) == (2, None)
    assert served.webhook.spec.headers == (("a", "1"),)
    with pytest.raises(ValidationFailed, match="secret is required"):
        await bench.hook("queue:orders", credentials=credentials(endpoint, client_secret=None))
