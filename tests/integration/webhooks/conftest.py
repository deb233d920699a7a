"""A deployment with a manual clock, a receiver, and deliverers that run step by step."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import pytest

from consumers.webhooks.deliverer import Deliverer, source_of
from consumers.webhooks.delivery_log import DeliveryLogWriter
from consumers.webhooks.endpoint import Endpoint
from consumers.webhooks.group_source import GroupSource
from consumers.webhooks.http_sender import DeliveryTracing, Sender
from consumers.webhooks.queue_source import QueueSource
from consumers.webhooks.ssrf_guard import Resolve, resolve
from storage.access.secret_box import new_key
from storage.bootstrap import Storage, open_storage
from storage.domain.access.egress import Egress
from storage.domain.clock import ManualClock
from storage.domain.names import QueueName, WebhookName
from storage.domain.queues.queue import QueueSpec
from storage.domain.webhooks import (
    AttemptOutcome,
    LeasedWebhook,
    Source,
    SourceKind,
    Webhook,
    WebhookSpec,
)
from storage.settings import StorageSettings
from tests.conditions import PATIENCE_S
from tests.webhook_receiver import Receiver, running_receiver

HOOK = WebhookName("hook")
ORDERS = QueueName("orders")
ALLOW = ("127.0.0.1",)


@dataclass
class DelivererCounters:
    """Counters of a deliverer."""

    outcomes: list[AttemptOutcome] = field(default_factory=list)
    disabled_now: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def attempted(self, kind: SourceKind, outcome: AttemptOutcome) -> None:
        self.outcomes.append(outcome)
        self.changed.set()

    async def until(self, outcome: AttemptOutcome) -> None:
        """Wait for the first attempt with this outcome, and for its consequences."""
        async with asyncio.timeout(PATIENCE_S):
            while outcome not in self.outcomes:
                self.changed.clear()
                await self.changed.wait()

    def disabled(self, count: int) -> None:
        self.disabled_now = count


@pytest.fixture
async def receiver() -> AsyncGenerator[Receiver]:
    """The receiver of deliveries."""
    async with running_receiver() as receiver:
        yield receiver


@pytest.fixture
def hook_settings(redis_url, database_url) -> StorageSettings:
    """Stores that keep secrets, and allow webhooks to this machine."""
    return StorageSettings(
        redis_url=redis_url,
        database_url=database_url,
        secret_keys=(new_key(),),
        webhook_allow=ALLOW,
    )


@pytest.fixture
async def storage(hook_settings: StorageSettings, clock: ManualClock) -> AsyncGenerator[Storage]:
    """The engines, whose scripts run on the test's clock."""
    async with open_storage(hook_settings, clock=clock) as storage:
        yield storage


@pytest.fixture
def counters() -> DelivererCounters:
    return DelivererCounters()


class Bench:
    """Creates webhooks, and serves them step by step."""

    def __init__(
        self, storage: Storage, clock: ManualClock, counters: DelivererCounters, url: str
    ) -> None:
        self.storage = storage
        self.clock = clock
        self.counters = counters
        self.url = url
        self.delivery_log = DeliveryLogWriter(storage.deliveries)
        self.endpoints: list[Endpoint] = []

    async def queue_hook(self, spec: QueueSpec | None = None, **more: object) -> Webhook:
        """Create a webhook `hook` of a queue `orders`."""
        await self.storage.catalog.put_queue(ORDERS, spec or QueueSpec())
        return await self.hook("queue:orders", **more)

    async def hook(self, source: str, **more: object) -> Webhook:
        """Create a webhook `hook` to the receiver, unless `url` is given."""
        fields = {"url": self.url, "timeout_ms": 2_000, **more}
        webhook_spec = WebhookSpec(source=Source.of(source), **fields)  # type: ignore[arg-type]
        webhook, *_ = await self.storage.webhooks.put(HOOK, webhook_spec)
        return webhook

    async def endpoint(
        self,
        resolver: Resolve = resolve,
        allow: tuple[str, ...] = ALLOW,
        tracing: DeliveryTracing | None = None,
    ) -> Endpoint:
        """Claim the webhook as a new deliverer, and return its endpoint."""
        deliverer = f"deliverer-{len(self.endpoints)}"
        await self.storage.deliveries.heartbeat(deliverer)
        [served] = await self.storage.deliveries.claim(deliverer, 10)
        return self.endpoint_of(served, resolver, allow, tracing)

    def endpoint_of(
        self,
        served: LeasedWebhook,
        resolver: Resolve = resolve,
        allow: tuple[str, ...] = ALLOW,
        tracing: DeliveryTracing | None = None,
    ) -> Endpoint:
        """Return the endpoint of a claimed webhook."""
        sender = Sender(
            served=served,
            egress=Egress.of(allow),
            clock=self.clock,
            resolver=resolver,
            tracing=tracing,
        )
        endpoint = Endpoint(
            served=served,
            sender=sender,
            delivery_log=self.delivery_log,
            clock=self.clock,
            metrics=self.counters,
            chance=lambda: 0.5,
            may_send=lambda: True,
        )
        self.endpoints.append(endpoint)
        return endpoint

    async def queue_source(self, **more: object) -> QueueSource:
        """Return the source that delivers a webhook of a queue."""
        source = source_of(await self.endpoint(**more), self.storage)  # type: ignore[arg-type]
        assert isinstance(source, QueueSource)
        return source

    async def group_source(self) -> GroupSource:
        """Return the source that delivers a webhook of a group, as a member."""
        source = source_of(await self.endpoint(), self.storage)
        assert isinstance(source, GroupSource)
        await source.join()
        return source

    async def deliveries(self):
        """Return the log, the oldest first."""
        await self.delivery_log.flush()
        webhook = await self.storage.webhooks.get(HOOK)
        return (await self.storage.deliveries.page(webhook))[::-1]

    def deliverer(self, storage: Storage | None = None, **more: object) -> Deliverer:
        """Create a complete deliverer."""
        fields = {"clock": self.clock, "chance": lambda: 0.5, **more}
        return Deliverer(storage or self.storage, ALLOW, self.counters, **fields)  # type: ignore[arg-type]


@pytest.fixture
async def bench(storage, clock, counters, receiver) -> AsyncGenerator[Bench]:
    bench = Bench(storage, clock, counters, receiver.url)
    yield bench
    for endpoint in bench.endpoints:
        await endpoint.close()
