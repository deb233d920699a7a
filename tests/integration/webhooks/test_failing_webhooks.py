"""Webhooks that fail by themselves, and disturb no other."""

import asyncio

import pytest

from consumers.webhooks.queue_source import QueueSource
from storage.concurrency.tasks import end
from storage.domain.names import QueueName, WebhookName
from storage.domain.webhooks import DisabledReason
from tests.integration.webhooks.hooks import many_hooks, send, spoil_url

pytestmark = pytest.mark.one_store


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
