"""Webhook deliveries of a backlog to a local receiver, against a loop of httpx.

Both post the same bodies over as many connections. The deliverer does more for each: it receives,
signs, acknowledges and logs. The receiver is the echo server.
"""

import asyncio
from collections.abc import Collection, Coroutine
from time import monotonic
from typing import Any

import httpx
import uvloop

from consumers.webhooks.deliverer import Deliverer
from storage.access.secret_box import new_key
from storage.bootstrap import Storage, open_storage
from storage.domain.names import QueueName, WebhookName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.webhooks import AttemptOutcome, Source, SourceKind, WebhookSpec
from tests.bench.plan import WEBHOOKS, Plan
from tests.bench.ratios import Measured, Row
from tests.bench.rounds import Contestant, interleave
from tests.bench.servers import House

QUEUE, HOOK = QueueName("bench-webhooks"), WebhookName("bench")
BODY = b"m" * 256
IN_FLIGHT = 64
PATIENCE_S = 120.0


def measure(house: House, plan: Plan, _: Collection[Row]) -> list[Measured]:
    """Deliver a backlog, in rounds."""
    url = f"http://127.0.0.1:{house.echo.port}/"
    contestant = Contestant(WEBHOOKS, lambda: _run(_deliver(house, url, plan.delivered)))
    return interleave(plan.rounds, lambda: _run(_post_by_httpx(url, plan.delivered)), [contestant])


def _run(work: Coroutine[Any, Any, float]) -> float:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


async def _post_by_httpx(url: str, count: int) -> float:
    """Posts per second."""
    left = iter(range(count))
    limits = httpx.Limits(max_connections=IN_FLIGHT, max_keepalive_connections=IN_FLIGHT)
    async with httpx.AsyncClient(trust_env=False, limits=limits) as client:

        async def post() -> None:
            for _ in left:
                (await client.post(url, content=BODY)).raise_for_status()

        begun = monotonic()
        await asyncio.gather(*(post() for _ in range(IN_FLIGHT)))
        return count / (monotonic() - begun)


class _Counted:
    """Count deliveries, and signal when all are done."""

    def __init__(self, count: int) -> None:
        self._left = count
        self.done = asyncio.Event()

    def attempted(self, kind: SourceKind, outcome: AttemptOutcome) -> None:
        self._left -= outcome is AttemptOutcome.DELIVERED
        if self._left <= 0:
            self.done.set()

    def disabled(self, count: int) -> None: ...


async def _deliver(house: House, url: str, count: int) -> float:
    """Deliveries per second, from the first heartbeat to the last row of the log."""
    settings = house.storage.model_copy(
        update={"secret_keys": (new_key(),), "webhook_allow": ("127.0.0.1",)}
    )
    async with open_storage(settings) as storage:
        await _fill(storage, url, count)
        counted = _Counted(count)
        deliverer = Deliverer(storage, settings.webhook_allow, counted)
        begun = monotonic()
        serving = asyncio.create_task(deliverer.run())
        async with asyncio.timeout(PATIENCE_S):
            await counted.done.wait()
            await deliverer.delivery_log.flush()
        took = monotonic() - begun
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        await storage.webhooks.delete(HOOK)
        await storage.catalog.delete_queue(QUEUE)
        return count / took


async def _fill(storage: Storage, url: str, count: int) -> None:
    await storage.catalog.put_queue(QUEUE, QueueSpec())
    for first in range(0, count, 1_000):
        messages = [NewMessage(BODY)] * min(1_000, count - first)
        await storage.queues.send(QUEUE, messages)
    source = Source(SourceKind.QUEUE, QUEUE.name)
    spec = WebhookSpec(source=source, url=url, in_flight_max=IN_FLIGHT)
    await storage.webhooks.put(HOOK, spec)
