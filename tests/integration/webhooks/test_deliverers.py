"""Deliverers share webhooks, and take over without loss."""

import asyncio

import pytest

from storage.bootstrap import open_storage
from storage.domain.limits import SECOND_MS
from storage.domain.names import QueueName
from tests.conditions import PATIENCE_S
from tests.integration.webhooks.conftest import HOOK, ORDERS
from tests.integration.webhooks.hooks import many_hooks, send
from tests.webhook_receiver import respond_with

pytestmark = pytest.mark.one_store


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
    async with asyncio.timeout(PATIENCE_S):
        while "orders" not in (await storage.webhooks.get(HOOK)).health.last_failure:
            await deliverer.delivery_log.flush()
            await asyncio.sleep(0.02)
    await deliverer._leave()


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
