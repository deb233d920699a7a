"""Deliverers share webhooks and take over without loss; the log and resends."""

import asyncio
from contextlib import suppress
from itertools import islice

import psycopg
import pytest

from consumers.webhooks.manual_delivery import Requested
from consumers.webhooks.queue_source import QueueSource
from storage.bootstrap import open_storage
from storage.concurrency.tasks import end
from storage.domain.errors import (
    DeliveryNotFound,
    PayloadGone,
    PreconditionFailed,
    SecretsOff,
    StorageUnavailable,
    ValidationFailed,
    WebhookBusy,
    WebhookNotFound,
)
from storage.domain.limits import (
    DAY_MS,
    HOUR_MS,
    SECOND_MS,
    WEBHOOK_MANUAL_DELIVERY_CONCURRENCY_MAX,
)
from storage.domain.limits import WEBHOOK_LOG_ATTEMPTS_MAX as KEPT
from storage.domain.limits import WEBHOOK_LOG_PAYLOAD_BYTES_MAX as KEPT_BYTES
from storage.domain.names import QueueName, WebhookName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.webhooks import (
    Attempt,
    AttemptOutcome,
    DeliveryFilter,
    DeliveryLogEntry,
    DeliveryStatus,
    DisabledReason,
    LoggedDelivery,
    Payload,
    Source,
    WebhookSpec,
)
from tests.integration.webhooks.conftest import ALLOW, HOOK, ORDERS
from tests.webhook_receiver import hang, respond_with

pytestmark = pytest.mark.one_store


async def send(storage, *bodies: bytes, queue: QueueName = ORDERS) -> list[str]:
    sent = await storage.queues.send(queue, [NewMessage(body) for body in bodies])
    return [message.message_id for message in sent]


async def many_hooks(bench, storage, count: int) -> None:
    for number in range(count):
        await storage.catalog.put_queue(QueueName(f"q{number}"), QueueSpec())
        spec = WebhookSpec(source=Source.of(f"queue:q{number}"), url=bench.url)
        await storage.webhooks.put(WebhookName(f"hook{number}"), spec)


async def test_two_deliverers_share_webhooks(bench, storage, receiver):
    await many_hooks(bench, storage, 5)
    deliverer, other = bench.deliverer(), bench.deliverer()

    await deliverer.heartbeat()
    alone = len(deliverer.served)
    await other.heartbeat()
    await deliverer.heartbeat()
    await other.heartbeat()
    shared = sorted([*deliverer.served, *other.served])
    for number in range(5):
        await send(storage, b"hello", queue=QueueName(f"q{number}"))
    await receiver.until(5)
    await deliverer._leave()
    await other.heartbeat()
    heir = len(other.served)
    await other._leave()

    assert alone == 5
    assert shared == [f"hook{number}" for number in range(5)]
    assert len({got.event_id for got in receiver.requests}) == len(receiver.requests) == 5
    assert heir == 5


async def test_webhooks_of_silent_deliverer_move_when_its_lease_ends(bench, storage, clock):
    await many_hooks(bench, storage, 1)
    silent, other = bench.deliverer(), bench.deliverer()
    await silent.heartbeat()

    clock.advance(10 * SECOND_MS - 1)
    await other.heartbeat()
    early = other.served
    clock.advance(1)
    await other.heartbeat()
    await silent.heartbeat()

    assert (early, other.served, silent.served) == ([], ["hook0"], [])
    await silent._leave()
    await other._leave()


async def test_deliverer_without_renewed_lease_stops_sending(bench, storage, receiver, monkeypatch):
    await bench.queue_hook()
    deliverer = bench.deliverer()
    await deliverer.heartbeat()

    monkeypatch.setattr(deliverer, "_lease_until", 0.0)
    await send(storage, b"hello")
    await asyncio.sleep(0.3)
    unsent = len(receiver.requests)
    await deliverer.heartbeat()
    await receiver.until(1)
    await deliverer._leave()

    assert unsent == 0


async def test_changed_webhook_is_served_with_new_configuration(bench, storage, receiver):
    await bench.queue_hook()
    deliverer = bench.deliverer()
    await deliverer.heartbeat()

    await bench.hook("queue:orders", headers=(("x-new", "1"),))
    await deliverer.heartbeat()
    await send(storage, b"hello")
    [got] = await receiver.until(1)
    await storage.webhooks.delete(HOOK)
    await deliverer.heartbeat()

    assert got.headers["x-new"] == "1"
    assert deliverer.served == []
    await deliverer._leave()


async def test_stopping_deliverer_finishes_current_deliveries(bench, storage, receiver):
    await bench.queue_hook(in_flight_max=1)
    deliverer = bench.deliverer()
    await deliverer.heartbeat()

    async def after_a_while(writer):
        await asyncio.sleep(1.2)
        await respond_with()(writer)

    receiver.behaviours = [after_a_while]
    await send(storage, b"one", b"two")
    await receiver.until(1)
    await deliverer._leave()

    stats = await storage.queues.stats(ORDERS)
    assert (stats.acknowledged, stats.ready, stats.in_flight) == (2, 0, 0)
    assert sorted(receiver.bodies) == [b"one", b"two"]


async def test_webhook_of_deleted_queue_reports_it(bench, storage):
    await bench.queue_hook()
    deliverer = bench.deliverer()
    await storage.catalog.delete_queue(ORDERS)
    await deliverer.heartbeat()
    async with asyncio.timeout(5):
        while "orders" not in (await storage.webhooks.get(HOOK)).health.last_failure:
            await deliverer.delivery_log.flush()
            await asyncio.sleep(0.02)
    await deliverer._leave()


# The log


async def test_log_has_row_per_message_with_its_attempts(bench, storage, receiver, clock):
    await bench.queue_hook()
    first, second = await send(storage, b"one", b"two")
    receiver.behaviours = [respond_with(500, b"no room"), respond_with(500, b"no room")]
    source = await bench.queue_source()
    await source.round()
    await bench.delivery_log.flush()
    begun_ms = clock.now_ms()
    clock.advance(5 * SECOND_MS)
    await source.round()
    [third] = await send(storage, b"three")
    await source.round()
    await bench.delivery_log.flush()
    webhook = await storage.webhooks.get(HOOK)
    page = storage.deliveries.page

    everything = await page(webhook)
    after_one = await page(webhook, after=(everything[0].first_at_ms, everything[0].event_id))
    assert {one.event_id for one in everything} == {first, second, third}
    assert everything[0].event_id == third
    assert [one.event_id for one in after_one] == [one.event_id for one in everything[1:]]
    assert [one.event_id for one in await page(webhook, DeliveryFilter(event_id=second))] == [
        second
    ]
    assert len(await page(webhook, DeliveryFilter(to_ms=begun_ms + 1))) == 2
    assert len(await page(webhook, DeliveryFilter(from_ms=begun_ms + 1))) == 1
    assert len(await page(webhook, DeliveryFilter(status=DeliveryStatus.DELIVERED))) == 3
    [delivery] = await page(webhook, DeliveryFilter(event_id=first))
    assert [attempt.status for attempt in delivery.last_attempts] == [500, 204]
    assert delivery.last_attempts[0].response == "no room"


async def test_log_keeps_last_attempts_and_counts_all(bench, storage, receiver, clock):
    await bench.queue_hook(
        QueueSpec(attempts_max=None), retry_delays_ms=(0,) * 30, disable_after_ms=DAY_MS
    )
    await send(storage, b"hello")
    receiver.default_behaviour = respond_with(404)
    source = await bench.queue_source()

    for _ in range(40):
        await source.round()
        clock.advance(11 * 60 * SECOND_MS)
    [delivery] = await bench.deliveries()

    assert delivery.attempts == 31
    assert len(delivery.last_attempts) == KEPT


async def test_log_entries_expire(bench, storage, receiver, clock):
    await bench.queue_hook(log_ms=HOUR_MS)
    await send(storage, b"hello")
    await (await bench.queue_source()).round()
    await bench.delivery_log.flush()

    clock.advance(HOUR_MS - 1)
    early = await storage.deliveries.delete_old()
    clock.advance(1)

    assert (early, await storage.deliveries.delete_old()) == (0, 1)


async def test_webhook_deleted_while_logged_does_not_affect_others(bench, storage, receiver):
    await bench.queue_hook()
    await many_hooks(bench, storage, 1)
    await send(storage, b"one")
    await send(storage, b"two", queue=QueueName("q0"))
    deliverer = bench.deliverer()
    await deliverer.heartbeat()
    await receiver.until(2)
    await storage.webhooks.delete(HOOK)
    await deliverer._leave()

    left = await storage.webhooks.get(WebhookName("hook0"))
    assert len(await storage.deliveries.page(left)) == 1


async def test_failing_log_write_does_not_stop_log(bench, storage, receiver, monkeypatch):
    await bench.queue_hook()
    log = storage.deliveries.log
    faults = [ValueError("a fault"), StorageUnavailable("away")]

    async def failing(told):
        if faults:
            raise faults.pop(0)
        await log(told)

    monkeypatch.setattr(storage.deliveries, "log", failing)
    source = await bench.queue_source()
    for body in (b"lost", b"kept"):
        await send(storage, body)
        await source.round()
        with suppress(StorageUnavailable):
            await bench.delivery_log.flush()

    [delivery] = await bench.deliveries()
    assert receiver.bodies == [b"lost", b"kept"]
    assert delivery.payload.body == b"kept"


# Webhooks that fail by themselves


async def test_webhook_that_cannot_start_is_disabled_alone(
    bench, storage, receiver, database_url, caplog
):
    """A host that only one of two URL parsers accepted ended the deliverer, and all its webhooks."""
    await many_hooks(bench, storage, 3)
    await spoil_url(database_url, "hook1", "https://8.8.8.999/hook")
    deliverer = bench.deliverer()

    await deliverer.heartbeat()
    await send(storage, b"one", queue=QueueName("q0"))
    await send(storage, b"two", queue=QueueName("q2"))
    await receiver.until(2)
    await deliverer.heartbeat()
    served = deliverer.served
    await deliverer._leave()

    spoiled = await storage.webhooks.get(WebhookName("hook1"))
    assert served == ["hook0", "hook2"]
    assert (spoiled.is_active, spoiled.disabled_reason) == (False, DisabledReason.INVALID)
    assert "8.8.8.999" in spoiled.health.last_failure
    assert caplog.messages.count("webhook_start_failed") == 1


async def test_webhook_whose_source_fails_delays_no_other(
    bench, storage, receiver, monkeypatch, caplog
):
    await many_hooks(bench, storage, 2)
    run = QueueSource.run

    async def failing(self: QueueSource) -> None:
        if self._queue.name == "q0":
            raise ValueError("a bug")
        await run(self)

    monkeypatch.setattr(QueueSource, "run", failing)
    deliverer = bench.deliverer()
    await deliverer.heartbeat()
    await send(storage, b"one", queue=QueueName("q1"))
    await receiver.until(1)
    failing_objects = [entry.object for entry in storage.isolation.failing]
    health = deliverer._serving[
        (await storage.webhooks.get(WebhookName("hook0"))).webhook_id
    ].endpoint.health
    await deliverer._leave()

    assert failing_objects == ["webhooks/default/hook0"]
    assert "a bug" in health.last_failure
    assert caplog.messages.count("object_failed") == 1


async def test_failing_heartbeat_does_not_end_deliverer(bench, storage, receiver, monkeypatch):
    await many_hooks(bench, storage, 1)
    deliverer = bench.deliverer()
    shares, failures = storage.deliveries.shares, [ValueError("a bug")]

    async def failing():
        if failures:
            raise failures.pop()
        return await shares()

    monkeypatch.setattr(storage.deliveries, "shares", failing)
    running = asyncio.create_task(deliverer.run())
    await send(storage, b"one", queue=QueueName("q0"))
    await receiver.until(1)
    await end(running)

    assert failures == []


async def test_test_of_webhook_with_invalid_url_is_rejected(
    bench, storage, database_url, requested
):
    await many_hooks(bench, storage, 1)
    await spoil_url(database_url, "hook0", "https://8.8.8.999/hook")

    for _ in range(WEBHOOK_MANUAL_DELIVERY_CONCURRENCY_MAX + 1):
        with pytest.raises(ValidationFailed, match=r"8\.8\.8\.999"):
            await requested.test(WebhookName("hook0"))


async def spoil_url(database_url: str, name: str, url: str) -> None:
    """Store a URL that an earlier version accepted."""
    statement = (
        "update webhooks set spec = jsonb_set(spec, '{url}', to_jsonb(%s::text)) where name = %s"
    )
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute(statement, (url, name))


# Requested deliveries


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


async def test_deliveries_of_a_message_are_those_of_its_queue(bench, storage):
    webhook = await bench.queue_hook()
    [message_id] = await send(storage, b"hello")
    await (await bench.queue_source()).round()
    await bench.delivery_log.flush()

    found = await storage.deliveries.of_message(ORDERS, message_id)
    elsewhere = await storage.deliveries.of_message(QueueName("other"), message_id)

    assert [(name, one.event_id) for name, one in found] == [(webhook.name.name, message_id)]
    assert elsewhere == []


async def test_unknown_webhook_or_delivery_is_not_found(bench, requested):
    with pytest.raises(WebhookNotFound):
        await requested.test(HOOK)
    await bench.queue_hook()
    with pytest.raises(DeliveryNotFound):
        await requested.resend(HOOK, "none")


# Definitions


async def test_put_of_equal_configuration_changes_nothing(bench, storage):
    first = await bench.queue_hook(headers=(("a", "1"),))
    same = await bench.hook("queue:orders", headers=(("a", "1"),))
    left_out = await bench.hook("queue:orders")
    changed = await bench.hook("queue:orders", headers=(("a", "2"),))
    served = await storage.webhooks.opened(HOOK)

    assert (first.version, same.version, left_out.version, changed.version) == (1, 1, 1, 2)
    assert changed.spec.headers == (("a", ""),)
    assert served.webhook.spec.headers == (("a", "2"),)


async def test_secrets_are_encrypted_in_database(bench, storage, database_url):
    await bench.queue_hook(headers=(("authorization", "Bearer opensesame"),))
    secret, *_ = await storage.webhooks.rotate(HOOK, DAY_MS)
    served = await storage.webhooks.opened(HOOK)

    with psycopg.connect(database_url) as connection:
        rows = connection.execute("select * from webhooks").fetchall()
        rows += connection.execute("select * from webhook_secrets").fetchall()
    assert "opensesame" not in repr(rows)
    assert secret.value not in repr(rows)
    assert served.secrets[0].value == secret.value
    assert len(served.secrets) == 2


async def test_number_of_signing_secrets_is_limited(bench, storage):
    await bench.queue_hook()
    for _ in range(8):
        await storage.webhooks.rotate(HOOK, DAY_MS)

    assert len((await storage.webhooks.opened(HOOK)).secrets) == 5


async def test_source_must_exist_and_cannot_change(bench, storage):
    await bench.queue_hook()
    await storage.catalog.put_queue(QueueName("other"), QueueSpec())

    with pytest.raises(ValidationFailed, match="immutable"):
        await bench.hook("queue:other")
    with pytest.raises(ValidationFailed, match="does not exist"):
        await bench.hook("queue:none")
    with pytest.raises(ValidationFailed, match="does not exist"):
        await bench.hook("group:none")


async def test_stale_version_is_rejected(bench, storage):
    webhook = await bench.queue_hook()

    with pytest.raises(PreconditionFailed):
        await storage.webhooks.put(HOOK, webhook.spec, if_match=7)
    with pytest.raises(PreconditionFailed):
        await storage.webhooks.put(HOOK, webhook.spec, create_only=True)
    with pytest.raises(PreconditionFailed):
        await storage.webhooks.delete(HOOK, if_match=7)


async def test_webhooks_require_secret_key(hook_settings, clock):
    told = hook_settings.model_copy(update={"secret_keys": ()})
    async with open_storage(told, clock=clock) as storage:
        await storage.catalog.put_queue(ORDERS, QueueSpec())
        spec = WebhookSpec(source=Source.of("queue:orders"), url="https://example.com/")

        with pytest.raises(SecretsOff):
            await storage.webhooks.put(HOOK, spec)


async def test_deliverer_without_secret_key_leaves_webhook_to_others(
    bench, storage, hook_settings, clock
):
    await bench.queue_hook()
    told = hook_settings.model_copy(update={"secret_keys": ()})
    async with open_storage(told, clock=clock) as without:
        blind, seeing = bench.deliverer(without), bench.deliverer()
        await blind.heartbeat()
        await seeing.heartbeat()

        assert (blind.served, seeing.served) == ([], ["hook"])
        await blind._leave()
        await seeing._leave()
