"""Changes of a webhook are in force, at every deliverer, when they are answered."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import httpx
import pytest
import standardwebhooks

from api.config.settings import Settings
from storage.domain import limits
from storage.domain.limits import Limits
from storage.domain.queues.message import NewMessage
from storage.domain.webhooks import Webhook
from tests.conditions import PATIENCE_S
from tests.integration.webhooks.conftest import HOOK, ORDERS, Bench
from tests.webhook_receiver import ReceivedRequest, Receiver, respond_with
from tests.websocket_client import running_server

pytestmark = pytest.mark.one_store

Check = Callable[[ReceivedRequest], bool]
"""Return whether a request was sent by the new configuration."""


@asynccontextmanager
async def running_deliverers(bench: Bench, count: int = 2) -> AsyncGenerator[None]:
    tasks = [asyncio.create_task(bench.deliverer().run()) for _ in range(count)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def flowing_events(bench: Bench) -> AsyncGenerator[None]:
    """Send a message every few milliseconds."""

    async def send() -> None:
        while True:
            await bench.storage.queues.send(ORDERS, [NewMessage(b"hello")])
            await asyncio.sleep(0.005)

    task = asyncio.create_task(send())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def rotate(bench: Bench) -> tuple[Webhook, Check]:
    secret, _, webhook = await bench.storage.webhooks.rotate(HOOK, 0)
    verifier = standardwebhooks.Webhook(secret.value)
    return webhook, lambda request: _is_signed(request, verifier)


def _is_signed(request: ReceivedRequest, verifier: standardwebhooks.Webhook) -> bool:
    moment = datetime.fromtimestamp(int(request.headers["webhook-timestamp"]), UTC)
    signature = verifier.sign(request.event_id, moment, request.body.decode())
    return request.headers["webhook-signature"] == signature


async def change_headers(bench: Bench) -> tuple[Webhook, Check]:
    webhook = await bench.hook("queue:orders", headers=(("x-new", "1"),))
    return webhook, lambda request: request.headers.get("x-new") == "1"


async def change_url(bench: Bench) -> tuple[Webhook, Check]:
    webhook = await bench.hook("queue:orders", url=f"{bench.url}/new")
    return webhook, lambda request: request.path.endswith("/new")


async def pause(bench: Bench) -> tuple[Webhook, Check]:
    return await bench.storage.webhooks.pause(HOOK, paused=True), lambda _: False


async def answer_late(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(0.3)
    await respond_with()(writer)


@pytest.mark.parametrize("behaviour", [respond_with(), answer_late])
@pytest.mark.parametrize("change", [rotate, change_headers, change_url, pause])
async def test_change_is_in_force_when_answered(bench, storage, receiver, change, behaviour):
    """A receiver that had dropped the former secret rejected requests for up to a second."""
    await bench.queue_hook()
    receiver.default_behaviour = behaviour

    async with running_deliverers(bench), flowing_events(bench):
        await receiver.until(20)
        webhook, is_new = await change(bench)
        in_force = await storage.webhooks.wait_until_in_force(webhook)
        answered = len(receiver.requests)
        await sent_since(receiver, answered, paused=change is pause)

    assert in_force
    assert all(is_new(request) for request in receiver.requests[answered:])


async def sent_since(receiver: Receiver, answered: int, *, paused: bool) -> None:
    """Wait for requests after the change; of a paused webhook, for longer than a heartbeat."""
    if paused:
        await asyncio.sleep(1.3)
    else:
        await receiver.until(answered + 20)


async def test_change_takes_effect_without_waiting_for_heartbeat(
    bench, storage, receiver, monkeypatch
):
    monkeypatch.setattr("consumers.webhooks.deliverer._BEAT_S", 60)
    await bench.queue_hook()

    async with running_deliverers(bench, 1):
        await storage.queues.send(ORDERS, [NewMessage(b"hello")])
        await receiver.until(1)
        webhook, _ = await change_headers(bench)
        async with asyncio.timeout(PATIENCE_S):
            assert await storage.webhooks.wait_until_in_force(webhook)


async def test_change_waits_for_lease_of_killed_deliverer(bench, storage, clock):
    await bench.queue_hook()
    killed = bench.deliverer()
    await killed.heartbeat()
    webhook, _ = await change_headers(bench)

    waiting = asyncio.create_task(storage.webhooks.wait_until_in_force(webhook))
    done, _ = await asyncio.wait([waiting], timeout=0.3)
    clock.advance(limits.WEBHOOK_LEASE_MS)
    in_force = await waiting
    await killed._leave()

    assert (done, in_force) == (set(), True)


async def test_change_is_answered_when_deliverer_does_not_confirm(bench, storage, monkeypatch):
    monkeypatch.setattr(limits, "WEBHOOK_CHANGE_WAIT_MS", 200)
    await bench.queue_hook()
    silent = bench.deliverer()
    await silent.heartbeat()

    webhook, _ = await change_headers(bench)
    in_force = await storage.webhooks.wait_until_in_force(webhook)
    await silent.heartbeat()
    confirmed = await storage.webhooks.wait_until_in_force(webhook)
    await silent._leave()

    assert (in_force, confirmed) == (False, True)


async def test_resumed_webhook_is_not_claimed_before_former_holder_stopped(bench, storage):
    """A pause ended the lease at once, and a second deliverer sent beside the first."""
    await bench.queue_hook()
    former, other = bench.deliverer(), bench.deliverer()
    await former.heartbeat()
    await storage.webhooks.pause(HOOK, paused=True)
    await storage.webhooks.pause(HOOK, paused=False)

    await other.heartbeat()
    early = other.served
    await former.heartbeat()

    assert (early, former.served) == ([], ["hook"])
    await former._leave()
    await other._leave()


REQUESTS = {
    "pause": ("PUT", "/v1/webhooks/hook/pause", None),
    "rotate": ("POST", "/v1/webhooks/hook/secret", {"overlap_seconds": 0}),
    "delete": ("DELETE", "/v1/webhooks/hook", None),
}


@pytest.mark.parametrize("verb", REQUESTS)
async def test_rest_answers_change_when_it_is_in_force(bench, storage, receiver, verb):
    """A deleted webhook sent requests for up to a second more."""
    await bench.queue_hook()
    method, path, body = REQUESTS[verb]

    async with (
        running_server(storage, Limits(), Settings()) as server,
        running_deliverers(bench),
        flowing_events(bench),
        httpx.AsyncClient(base_url=server.url) as client,
    ):
        await receiver.until(20)
        answer = await client.request(method, path, json=body)
        answered = len(receiver.requests)
        await sent_since(receiver, answered, paused=verb != "rotate")

    later = receiver.requests[answered:]
    assert answer.status_code < 300, answer.text
    assert verb == "delete" or answer.json()["in_force"]
    assert len(later) == 0 or verb == "rotate"
    if verb == "rotate":
        verifier = standardwebhooks.Webhook(answer.json()["secret"])
        assert all(_is_signed(request, verifier) for request in later)
