"""Webhooks of a queue: signed, acknowledged on success, and retried otherwise."""

import asyncio
import json
from datetime import UTC, datetime

import pytest
import standardwebhooks

from api.observability.otel import OtelTracing
from storage.domain import limits
from storage.domain.errors import StorageUnavailable
from storage.domain.limits import (
    DETAILS_CHARACTERS_MAX,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
)
from storage.domain.names import QueueName
from storage.domain.queues.backoff import Backoff, BackoffKind, Jitter
from storage.domain.queues.dead_letter_origin import origin_of
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import DeadLetterTarget, QueueSpec, QueueType
from storage.domain.webhooks import AttemptOutcome, BodyFormat, DeliveryStatus, DisabledReason
from tests.integration.webhooks.conftest import HOOK, ORDERS
from tests.otlp_collector import attributes_of, running_collector
from tests.webhook_receiver import (
    close,
    hang,
    hang_in_body,
    reset,
    respond_endlessly,
    respond_slowly,
    respond_with,
    respond_with_garbage,
)

pytestmark = pytest.mark.one_store

DEAD = QueueName("dead")


async def send(storage, *bodies: bytes, **more) -> list[str]:
    messages = [NewMessage(body, **more) for body in bodies]
    return [sent.message_id for sent in await storage.queues.send(ORDERS, messages)]


async def test_message_is_posted_and_acknowledged(bench, storage, receiver):
    await bench.queue_hook(headers=(("Authorization", "Bearer 7"),))
    headers = (("source", "", b"web"), ("odd", "", "50 %ä".encode()))
    [message_id] = await send(
        storage, b'{"order":7}', content_type="application/json", headers=headers
    )

    await (await bench.queue_source()).round()

    [got] = receiver.requests
    assert (got.event_id, got.body) == (message_id, b'{"order":7}')
    assert got.headers["content-type"] == "application/json"
    assert got.headers["authorization"] == "Bearer 7"
    assert got.headers["millstream-source"] == "queue:orders"
    assert got.headers["millstream-webhook"] == "hook"
    assert got.headers["millstream-attempt"] == "1"
    assert got.headers["millstream-header-source"] == "web"
    assert got.headers["millstream-header-odd"] == "50 %25%C3%A4"
    stats = await storage.queues.stats(ORDERS)
    assert (stats.acknowledged, stats.ready, stats.in_flight) == (1, 0, 0)


async def test_delivery_attempt_is_span_of_message_trace(bench, storage, receiver):
    made_in = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    await bench.queue_hook()
    receiver.behaviours.append(respond_with(503))
    await send(storage, b"hello", headers=(("traceparent", "", made_in),))

    with running_collector() as collected:
        spans = OtelTracing(f"{collected.url}/v1/traces")
        await (await bench.queue_source(tracing=spans)).round()
        await asyncio.to_thread(spans.close)

    [got], [span] = receiver.requests, collected.spans_named("deliver hook")
    _, trace, sender, _ = made_in.decode().split("-")
    assert got.headers["traceparent"] == f"00-{trace}-{span.span_id.hex()}-01"
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (trace, sender)
    assert [link.span_id.hex() for link in span.links] == [sender]
    assert attributes_of(span)["http.response.status_code"] == 503
    assert attributes_of(span)["error.type"] == "throttled"


async def test_signature_follows_standard_webhooks(bench, storage, receiver):
    await bench.queue_hook()
    secret, *_ = await storage.webhooks.rotate(HOOK, 0)
    await send(storage, b"hello")

    await (await bench.queue_source()).round()

    [got] = receiver.requests
    verifier, timestamp = (
        standardwebhooks.Webhook(secret.value),
        int(got.headers["webhook-timestamp"]),
    )
    assert timestamp == bench.clock.now_ms() // 1000
    signed = verifier.sign(got.event_id, _moment(timestamp), got.body.decode())
    assert got.headers["webhook-signature"] == signed


def _moment(timestamp: int):
    return datetime.fromtimestamp(timestamp, UTC)


async def test_both_secrets_sign_during_rotation(bench, storage, receiver, clock):
    await bench.queue_hook()
    first, *_ = await storage.webhooks.rotate(HOOK, 0)
    second, until_ms, _ = await storage.webhooks.rotate(HOOK, HOUR_MS)
    source = await bench.queue_source()
    await send(storage, b"during")
    await source.round()

    clock.advance(HOUR_MS)
    await send(storage, b"after")
    await source.round()

    during, after = receiver.requests
    assert until_ms == clock.now_ms()
    assert _signed_by(during, second.value, first.value)
    assert _signed_by(after, second.value)


def _signed_by(got, *secrets: str) -> bool:
    moment = _moment(int(got.headers["webhook-timestamp"]))
    signatures = [
        standardwebhooks.Webhook(secret).sign(got.event_id, moment, got.body.decode())
        for secret in secrets
    ]
    return bool(got.headers["webhook-signature"] == " ".join(signatures))


async def test_envelope_has_every_field(bench, storage, receiver):
    await bench.queue_hook(format=BodyFormat.ENVELOPE)
    [message_id] = await send(
        storage, b'{"order":7}', content_type="application/json", headers=(("a", "", b"b"),)
    )
    await send(storage, b"\xff\x00")

    source = await bench.queue_source()
    await source.round()

    payloads = [
        json.loads(body) for body in sorted(receiver.bodies, key=lambda body: b"base64" in body)
    ]
    assert payloads[0]["id"] == message_id
    assert (payloads[0]["type"], payloads[0]["source"]) == (
        "queue.message",
        "queue:orders",
    )
    assert payloads[0]["data"]["body"] == {"order": 7}
    assert payloads[0]["data"]["headers"] == {"a": "b"}
    assert payloads[1]["data"]["body_base64"] == "/wA="


FAILURES = [
    (respond_with(500, b"no room"), AttemptOutcome.SERVER_ERROR, 500),
    (respond_with(404), AttemptOutcome.CLIENT_ERROR, 404),
    (respond_with(302, location="http://127.0.0.1:1/"), AttemptOutcome.REDIRECT, 302),
    (respond_with(503), AttemptOutcome.THROTTLED, 503),
    (hang, AttemptOutcome.TIMEOUT, None),
    (respond_slowly, AttemptOutcome.TIMEOUT, None),
    (reset, AttemptOutcome.CONNECTION, None),
    (close, AttemptOutcome.CONNECTION, None),
    (respond_with_garbage, AttemptOutcome.CONNECTION, None),
]


@pytest.mark.parametrize(("behave", "outcome", "status"), FAILURES)
async def test_every_unsuccessful_response_is_retried(
    bench, storage, receiver, clock, behave, outcome, status
):
    await bench.queue_hook(timeout_ms=300)
    [message_id] = await send(storage, b"hello")
    receiver.behaviours = [behave]
    source = await bench.queue_source()

    await source.round()
    [failed] = await bench.deliveries()
    clock.advance(5 * SECOND_MS - 1)
    early = await source.round()
    clock.advance(1)
    await source.round()
    [delivered] = await bench.deliveries()

    assert (failed.status, failed.attempts) == (DeliveryStatus.RETRYING, 1)
    assert (failed.last_attempts[0].outcome, failed.last_attempts[0].status) == (outcome, status)
    assert early == 0
    assert [got.event_id for got in receiver.requests] == [message_id] * 2
    assert [got.headers["millstream-attempt"] for got in receiver.requests] == ["1", "2"]
    assert (delivered.status, delivered.attempts) == (DeliveryStatus.DELIVERED, 2)
    assert delivered.next_at_ms is None
    assert (await storage.queues.stats(ORDERS)).acknowledged == 1


@pytest.mark.parametrize(
    "behave", [respond_endlessly, hang_in_body, respond_with(200, b"x" * 100_000)]
)
async def test_success_does_not_depend_on_response_body(bench, storage, receiver, behave):
    await bench.queue_hook(timeout_ms=300)
    await send(storage, b"hello")
    receiver.behaviours = [behave]

    await (await bench.queue_source()).round()

    [delivery] = await bench.deliveries()
    assert delivery.status is DeliveryStatus.DELIVERED
    assert len(delivery.last_attempts[0].response) <= 4096
    assert (await storage.queues.stats(ORDERS)).acknowledged == 1


async def test_retry_schedule_is_standard_and_ends_in_dead_letters(bench, storage, receiver, clock):
    await bench.queue_hook(disable_after_ms=30 * 24 * HOUR_MS)
    [message_id] = await send(storage, b"hello")
    receiver.default_behaviour = respond_with(500)
    source = await bench.queue_source()
    waits = [5 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS]
    waits += [hours * HOUR_MS for hours in (2, 5, 10, 14, 20, 24)]

    await source.round()
    for number, wait in enumerate(waits, start=2):
        clock.advance(wait - 1)
        assert await source.round() == 0
        clock.advance(1)
        assert await source.round() == 1
        assert len(receiver.requests) == number

    [delivery] = await bench.deliveries()
    [dead], _ = await storage.dead_letters.browse(ORDERS)
    assert {got.event_id for got in receiver.requests} == {message_id}
    assert (delivery.status, delivery.attempts) == (DeliveryStatus.FAILED, 10)
    assert (dead.message_id, dead.reason) == (message_id, "500")


async def test_queue_attempt_limit_ends_retries_earlier(bench, storage, receiver, clock):
    await bench.queue_hook(QueueSpec(attempts_max=2))
    await send(storage, b"hello")
    receiver.default_behaviour = respond_with(500)
    source = await bench.queue_source()

    await source.round()
    clock.advance(MINUTE_MS)
    await source.round()

    [delivery] = await bench.deliveries()
    assert delivery.status is DeliveryStatus.FAILED
    letters, _ = await storage.dead_letters.browse(ORDERS)
    assert len(letters) == 1


async def test_webhook_is_listed_as_consumer_of_its_queue(bench, storage):
    await bench.queue_hook(QueueSpec())
    await send(storage, b"hello")
    source = await bench.queue_source()

    await source.round()
    [activity] = (await storage.queue_consumers.active(ORDERS)).consumers

    assert (activity.consumer.protocol, activity.consumer.principal) == ("webhook", "hook")
    assert activity.in_flight == 0


async def test_dead_letters_have_response_of_receiver(bench, storage, receiver, clock):
    await bench.queue_hook(QueueSpec(attempts_max=2))
    await send(storage, b"hello")
    receiver.behaviours = [respond_with(500), respond_with(422, b"x" * 8_000)]
    source = await bench.queue_source()

    await source.round()
    clock.advance(MINUTE_MS)
    await source.round()

    [letter], _ = await storage.dead_letters.browse(ORDERS)
    assert (letter.reason, letter.failures) == ("422", 2)
    assert letter.details == "x" * DETAILS_CHARACTERS_MAX


async def test_dead_letter_queue_has_response_of_receiver(bench, storage, receiver, clock):
    target = DeadLetterTarget("dead", 2)
    await storage.catalog.put_queue(DEAD, QueueSpec())
    await bench.queue_hook(QueueSpec(dead_letters=target))
    await send(storage, b"hello")
    receiver.default_behaviour = respond_with(503, b"busy")
    source = await bench.queue_source()

    for _ in range(3):
        await source.round()
        clock.advance(HOUR_MS)

    [letter] = await storage.queues.receive(DEAD)
    origin = origin_of(letter.system)
    assert origin is not None
    assert (origin.source, origin.failures, origin.details) == ("queue:orders", 2, "busy")
    assert origin.reason == "503: the endpoint is throttling"


async def test_410_disables_webhook_and_keeps_message(bench, storage, receiver, clock):
    await bench.queue_hook()
    await send(storage, b"hello")
    receiver.behaviours = [respond_with(410)]
    deliverer = bench.deliverer()
    await deliverer.heartbeat()
    await receiver.until(1)
    await bench.counters.until(AttemptOutcome.GONE)

    await deliverer.heartbeat()
    disabled = await storage.webhooks.get(HOOK)
    stats = await storage.queues.stats(ORDERS)
    await deliverer.heartbeat()
    enabled = await storage.webhooks.enable(HOOK)
    await deliverer.heartbeat()
    await receiver.until(2)
    await deliverer._leave()

    assert (disabled.is_active, disabled.disabled_reason) == (False, DisabledReason.GONE)
    assert bench.counters.disabled_now == 0
    assert (stats.ready, stats.dead_lettered) == (1, 0)
    assert enabled.is_active
    assert receiver.requests[0].event_id == receiver.requests[1].event_id


async def test_webhook_is_disabled_after_days_of_failure(bench, storage, receiver, clock):
    await bench.queue_hook(disable_after_ms=HOUR_MS, retry_delays_ms=(30 * MINUTE_MS,) * 5)
    await send(storage, b"hello")
    receiver.default_behaviour = respond_with(500)
    source = await bench.queue_source()
    [endpoint] = bench.endpoints

    await source.round()
    clock.advance(30 * MINUTE_MS)
    await source.round()
    before = endpoint.to_disable
    clock.advance(30 * MINUTE_MS)
    await source.round()

    assert before is None
    assert endpoint.to_disable is DisabledReason.FAILING
    clock.advance(HOUR_MS)
    assert await source.round() == 0  # nothing more is sent


async def test_retry_after_applies_to_all_messages(bench, storage, receiver, clock):
    await bench.queue_hook(in_flight_max=1)
    await send(storage, b"one")
    receiver.behaviours = [respond_with(429, retry_after="60")]
    source = await bench.queue_source()
    await source.round()
    await send(storage, b"two")

    clock.advance(60 * SECOND_MS - 1)
    early = await source.round()
    clock.advance(1)
    await source.round()

    assert early == 0
    assert sorted(receiver.bodies[1:]) == [b"one", b"two"]


async def test_retry_after_is_limited(bench, storage, receiver, clock):
    await bench.queue_hook()
    await send(storage, b"one")
    receiver.behaviours = [respond_with(503, retry_after="99999999")]
    source = await bench.queue_source()
    await source.round()

    clock.advance(HOUR_MS)
    await source.round()

    assert len(receiver.requests) == 2


async def test_circuit_opens_after_ten_failures_and_probes(bench, storage, receiver, clock):
    await bench.queue_hook()
    await send(storage, *[b"%d" % number for number in range(30)])
    receiver.default_behaviour = respond_with(500)
    source = await bench.queue_source()

    while await source.round():
        pass
    opened = len(receiver.requests)
    clock.advance(10 * SECOND_MS)
    await source.round()
    probed = len(receiver.requests) - opened
    receiver.default_behaviour = respond_with()
    clock.advance(20 * SECOND_MS)
    await source.round()
    while await source.round():
        clock.advance(5 * MINUTE_MS)
    clock.advance(5 * MINUTE_MS)
    while await source.round():
        pass

    assert 10 <= opened <= 20
    assert probed == 1
    assert (await storage.queues.stats(ORDERS)).acknowledged == 30


async def test_deliveries_in_flight_are_limited(bench, storage, receiver):
    await bench.queue_hook(in_flight_max=3)
    await send(storage, *[b"%d" % number for number in range(20)])
    source = await bench.queue_source()

    while await source.round():
        pass

    assert len(receiver.requests) == 20
    assert receiver.busy_max <= 3


async def test_fifo_queue_keeps_order_across_failures(bench, storage, receiver, clock):
    await bench.queue_hook(QueueSpec(type=QueueType.FIFO))
    for number in range(4):
        message = NewMessage(b"%d" % number, group="g", dedup_id=str(number))
        await storage.queues.send(ORDERS, [message])
    receiver.behaviours = [respond_with(), respond_with(500)]
    source = await bench.queue_source()

    await source.round()
    clock.advance(5 * SECOND_MS)
    while await source.round():
        pass

    assert receiver.bodies == [b"0", b"1", b"1", b"2", b"3"]


async def test_next_fifo_message_waits_when_ack_is_lost(
    bench, storage, receiver, clock, monkeypatch
):
    """The second message of a group was posted although the ack of the first had failed.

    Then the first was posted again.
    """
    await bench.queue_hook(QueueSpec(type=QueueType.FIFO))
    for number in range(3):
        message = NewMessage(b"%d" % number, group="g", dedup_id=str(number))
        await storage.queues.send(ORDERS, [message])
    source = await bench.queue_source()

    with monkeypatch.context() as away:
        away.setattr(storage.queues, "settle", _unavailable)
        await source.round()
    for _ in range(3):
        clock.advance(limits.WEBHOOK_MESSAGE_LEASE_MS)
        await source.round()

    assert receiver.bodies == [b"0", b"0", b"1", b"2"]


async def test_next_fifo_message_waits_when_ack_is_late(bench, storage, receiver, clock):
    """The leases of all messages had expired, so the first is delivered again."""
    await bench.queue_hook(QueueSpec(type=QueueType.FIFO))
    for number in range(2):
        message = NewMessage(b"%d" % number, group="g", dedup_id=str(number))
        await storage.queues.send(ORDERS, [message])
    source = await bench.queue_source()

    async def late(writer: asyncio.StreamWriter) -> None:
        clock.advance(2 * limits.WEBHOOK_MESSAGE_LEASE_MS)
        await storage.queues.receive(ORDERS)
        await respond_with()(writer)

    receiver.behaviours = [late]
    await source.round()

    assert receiver.bodies == [b"0"]


async def _unavailable(*_: object, **__: object) -> None:
    raise StorageUnavailable


async def test_leases_of_pending_messages_are_extended(bench, storage, receiver, clock):
    await bench.queue_hook()
    await send(storage, b"hello")
    source = await bench.queue_source()
    receiver.behaviours = [hang]
    working = asyncio.create_task(source.round())
    await receiver.until(1)
    for _ in range(3):
        clock.advance(10 * SECOND_MS)
        await source.extend()
    stats = await storage.queues.stats(ORDERS)
    await working

    assert stats.in_flight == 1
    assert len(receiver.requests) == 1


async def test_queue_backoff_does_not_change_schedule(bench, storage, receiver, clock):
    slow = Backoff(kind=BackoffKind.FIXED, initial_ms=HOUR_MS, jitter=Jitter.NONE)
    await bench.queue_hook(QueueSpec(backoff=slow))
    await send(storage, b"hello")
    receiver.behaviours = [respond_with(500)]
    source = await bench.queue_source()

    await source.round()
    clock.advance(5 * SECOND_MS)
    await source.round()

    assert len(receiver.requests) == 2
