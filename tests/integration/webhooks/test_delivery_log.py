"""The log of deliveries: its rows, its attempts and their end."""

from contextlib import suppress

import pytest

from storage.domain.errors import StorageUnavailable
from storage.domain.limits import DAY_MS, HOUR_MS, SECOND_MS
from storage.domain.limits import WEBHOOK_LOG_ATTEMPTS_MAX as KEPT
from storage.domain.names import QueueName, WebhookName
from storage.domain.queues.queue import QueueSpec
from storage.domain.webhooks import DeliveryFilter, DeliveryStatus
from tests.integration.webhooks.conftest import HOOK, ORDERS
from tests.integration.webhooks.hooks import many_hooks, send
from tests.webhook_receiver import respond_with

pytestmark = pytest.mark.one_store


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


async def test_deliveries_of_a_message_are_those_of_its_queue(bench, storage):
    webhook = await bench.queue_hook()
    [message_id] = await send(storage, b"hello")
    await (await bench.queue_source()).round()
    await bench.delivery_log.flush()

    found = await storage.deliveries.of_message(ORDERS, message_id)
    elsewhere = await storage.deliveries.of_message(QueueName("other"), message_id)

    assert [(name, one.event_id) for name, one in found] == [(webhook.name.name, message_id)]
    assert elsewhere == []
