"""Deliveries on request: resends, one by one or by filter, and test deliveries."""

import asyncio
from itertools import islice

import pytest

from consumers.webhooks.manual_delivery import Requested
from storage.concurrency.tasks import end
from storage.domain.errors import (
    DeliveryNotFound,
    PayloadGone,
    ValidationFailed,
    WebhookBusy,
    WebhookNotFound,
)
from storage.domain.limits import HOUR_MS, SECOND_MS, WEBHOOK_MANUAL_DELIVERY_CONCURRENCY_MAX
from storage.domain.limits import WEBHOOK_LOG_PAYLOAD_BYTES_MAX as KEPT_BYTES
from storage.domain.names import WebhookName
from storage.domain.webhooks import (
    Attempt,
    AttemptOutcome,
    DeliveryFilter,
    DeliveryLogEntry,
    DeliveryStatus,
    LoggedDelivery,
    Payload,
)
from tests.integration.webhooks.conftest import ALLOW, HOOK
from tests.integration.webhooks.hooks import many_hooks, send, spoil_url
from tests.webhook_receiver import hang, respond_with

pytestmark = pytest.mark.one_store


async def test_test_of_webhook_with_invalid_url_is_rejected(
    bench, storage, database_url, requested
):
    await many_hooks(bench, storage, 1)
    await spoil_url(database_url, "hook0", "https://8.8.8.999/hook")

    for _ in range(WEBHOOK_MANUAL_DELIVERY_CONCURRENCY_MAX + 1):
        with pytest.raises(ValidationFailed, match=r"8\.8\.8\.999"):
            await requested.test(WebhookName("hook0"))


@pytest.fixture
def requested(storage, clock) -> Requested:
    return Requested(storage, ALLOW, clock=clock)


async def test_delivery_is_resent_under_its_id_even_after_success(
    bench, storage, receiver, requested
):
    await bench.queue_hook()
    [message_id] = await send(storage, b"hello")
    await (await bench.queue_source()).round()
    await bench.delivery_log.flush()

    attempt = await requested.resend(HOOK, message_id)
    receiver.behaviours = [respond_with(500)]
    failed = await requested.resend(HOOK, message_id)

    [delivery] = await bench.deliveries()
    assert (attempt.outcome, failed.outcome) == (
        AttemptOutcome.DELIVERED,
        AttemptOutcome.SERVER_ERROR,
    )
    assert [(got.event_id, got.body) for got in receiver.requests] == [(message_id, b"hello")] * 3
    assert (delivery.status, delivery.attempts) == (DeliveryStatus.DELIVERED, 3)
    assert [last_attempt.resent for last_attempt in delivery.last_attempts] == [False, True, True]


async def test_waiting_message_is_acknowledged_by_successful_resend(
    bench, storage, receiver, requested, clock
):
    await bench.queue_hook()
    [message_id] = await send(storage, b"x" * (KEPT_BYTES + 1))
    receiver.behaviours = [respond_with(500)]
    source = await bench.queue_source()
    await source.round()
    await bench.delivery_log.flush()

    await requested.resend(HOOK, message_id)
    clock.advance(HOUR_MS)
    again = await source.round()

    [delivery] = await bench.deliveries()
    assert again == 0
    assert delivery.status is DeliveryStatus.DELIVERED
    assert delivery.next_at_ms is None


async def test_dead_letter_can_be_resent(bench, storage, receiver, requested):
    await bench.queue_hook(retry_delays_ms=())
    [message_id] = await send(storage, b"hello")
    receiver.behaviours = [respond_with(500)]
    await (await bench.queue_source()).round()
    await bench.delivery_log.flush()

    await requested.resend(HOOK, message_id)

    [delivery] = await bench.deliveries()
    assert delivery.status is DeliveryStatus.DELIVERED
    assert receiver.bodies == [b"hello"] * 2


async def test_deleted_message_too_large_to_log_cannot_be_resent(
    bench, storage, receiver, requested
):
    await bench.queue_hook()
    [message_id] = await send(storage, b"x" * (KEPT_BYTES + 1))
    await (await bench.queue_source()).round()
    await bench.delivery_log.flush()

    with pytest.raises(PayloadGone):
        await requested.resend(HOOK, message_id)


async def test_test_delivery_is_signed_and_its_response_returned(
    bench, storage, receiver, requested
):
    await bench.queue_hook(paused=True)
    receiver.behaviours = [respond_with(418, b"tea")]

    attempt = await requested.test(HOOK)

    [got] = receiver.requests
    assert (attempt.status, attempt.response) == (418, "tea")
    assert got.headers["millstream-event"] == "webhook.test"
    assert got.headers["webhook-signature"].startswith("v1,")
    assert await bench.deliveries() == []


async def test_concurrent_requested_deliveries_are_limited(bench, storage, receiver, requested):
    await bench.queue_hook()
    receiver.default_behaviour = hang

    deliveries = [asyncio.create_task(requested.test(HOOK)) for _ in range(20)]
    for refused in islice(asyncio.as_completed(deliveries), 4):
        with pytest.raises(WebhookBusy):
            await refused
    unanswered = [delivery for delivery in deliveries if not delivery.done()]
    await end(*deliveries)

    assert len(unanswered) == 16


async def log_failures(storage, webhook, *statuses: int) -> None:
    """Log one failed delivery for each response status, a second apart."""
    entries = [
        DeliveryLogEntry(
            event_id=f"event-{n}",
            status=DeliveryStatus.FAILED,
            attempts=1,
            attempt=Attempt(
                outcome=AttemptOutcome.SERVER_ERROR, at_ms=n, duration_ms=1, status=status
            ),
            at_ms=n * SECOND_MS,
            payload=Payload(b"%d" % n, "", ()) if status != 507 else None,
        )
        for n, status in enumerate(statuses)
    ]
    logged = [LoggedDelivery(webhook.webhook_id, webhook.spec.log_ms, one) for one in entries]
    await storage.deliveries.log(logged)


async def test_matching_deliveries_are_resent_in_rounds(bench, storage, receiver, requested):
    webhook = await bench.queue_hook(in_flight_max=1)
    await log_failures(storage, webhook, 500, 503, 500, 500)
    chosen = DeliveryFilter(status=DeliveryStatus.FAILED, response_status=500)
    receiver.behaviours = [respond_with(500)]

    first = await requested.resend_matching(HOOK, chosen, after=None, limit=1)
    second = await requested.resend_matching(HOOK, chosen, after=first.after, limit=2)
    third = await requested.resend_matching(HOOK, chosen, after=second.after, limit=2)

    assert [got.event_id for got in receiver.requests] == ["event-3", "event-2", "event-0"]
    assert [len(one.attempts) for one in (first, second, third)] == [1, 2, 0]
    assert third.after is None
    statuses = {one.event_id: (one.status, one.attempts) for one in await bench.deliveries()}
    assert statuses == {
        "event-0": (DeliveryStatus.DELIVERED, 2),
        "event-1": (DeliveryStatus.FAILED, 1),
        "event-2": (DeliveryStatus.DELIVERED, 2),
        "event-3": (DeliveryStatus.FAILED, 2),
    }


@pytest.mark.parametrize(
    ("conditions", "matched"),
    [
        ({}, 4),
        ({"response_status": 500}, 2),
        ({"outcome": AttemptOutcome.SERVER_ERROR}, 4),
        ({"outcome": AttemptOutcome.TIMEOUT}, 0),
        ({"status": DeliveryStatus.DELIVERED}, 0),
        ({"from_ms": SECOND_MS, "to_ms": 3 * SECOND_MS}, 2),
    ],
)
async def test_matching_deliveries_are_counted(bench, storage, conditions, matched):
    webhook = await bench.queue_hook()
    await log_failures(storage, webhook, 500, 503, 507, 500)
    chosen = DeliveryFilter(**conditions)

    assert await storage.deliveries.count(webhook, chosen) == matched
    assert len(await storage.deliveries.page(webhook, chosen)) == matched


async def test_missing_payload_stops_no_other_resend(bench, storage, requested):
    webhook = await bench.queue_hook()
    await log_failures(storage, webhook, 500, 507, 500)

    resends = await requested.resend_matching(HOOK, DeliveryFilter(), after=None, limit=9)

    assert [attempt and attempt.succeeded for attempt in resends.attempts] == [True, None, True]
    assert resends.after is None


async def test_resends_keep_the_rate_of_the_webhook(bench, storage, requested, monkeypatch):
    webhook = await bench.queue_hook(rate=0.001)
    await log_failures(storage, webhook, 500, 500)
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        bench.clock.advance(ms=round(seconds * SECOND_MS))

    monkeypatch.setattr("consumers.webhooks.manual_delivery.asyncio.sleep", sleep)
    resends = await requested.resend_matching(HOOK, DeliveryFilter(), after=None, limit=9)

    assert pauses == [15.0]
    assert len(resends.attempts) == 1
    assert resends.after is not None


async def test_unknown_webhook_or_delivery_is_not_found(bench, requested):
    with pytest.raises(WebhookNotFound):
        await requested.test(HOOK)
    await bench.queue_hook()
    with pytest.raises(DeliveryNotFound):
        await requested.resend(HOOK, "none")
