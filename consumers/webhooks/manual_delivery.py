"""Deliveries on request: one again, or a test.

Sent by the process that receives the request, immediately and once.
"""

import secrets
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress

import httpx
import msgspec

from consumers.webhooks.http_sender import Sender
from consumers.webhooks.ssrf_guard import Resolve, resolve
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.egress import Egress
from storage.domain.clock import Clock, SystemClock
from storage.domain.errors import MillstreamError, ValidationFailed, WebhookBusy
from storage.domain.names import QueueName, WebhookName
from storage.domain.webhooks import (
    Attempt,
    DeliveryLogEntry,
    DeliveryStatus,
    Event,
    LeasedWebhook,
    LoggedDelivery,
    SourceKind,
    Webhook,
    WebhookDelivery,
)

_CLOCK = SystemClock()


class Requested:
    """Sender of requested deliveries.

    `allow`: the destinations allowed for webhooks, in the syntax of the settings.
    """

    def __init__(
        self,
        storage: Storage,
        allow: Iterable[str],
        *,
        clock: Clock = _CLOCK,
        resolver: Resolve = resolve,
    ) -> None:
        self._storage = storage
        self._egress = Egress.of(allow)
        self._clock = clock
        self._resolver = resolver
        self._in_flight = 0

    async def test(self, name: WebhookName) -> Attempt:
        """Send a test event, and return the outcome.

        Raises WebhookNotFound, WebhookBusy.
        """
        served = await self._storage.webhooks.opened(name)
        payload = {"webhook": name.name, "message": "This is a test."}
        event = Event(
            event_id=f"test_{secrets.token_hex(12)}",
            kind="webhook.test",
            source=str(served.webhook.spec.source),
            payload=msgspec.json.encode(payload),
            content_type="application/json",
            at_ms=self._clock.now_ms(),
        )
        async with self._sender(served) as sender:
            return await sender.post(event, 1)

    async def resend(self, name: WebhookName, event_id: str) -> Attempt:
        """Send a delivery again, log it, and return the outcome.

        Raises WebhookNotFound, DeliveryNotFound, PayloadGone, WebhookBusy.
        """
        served = await self._storage.webhooks.opened(name)
        webhook = served.webhook
        delivery, event = await self._storage.deliveries.event(webhook, event_id)
        async with self._sender(served) as sender:
            attempt = await sender.post(event, delivery.attempts + 1, resent=True)
        await self._log(webhook, delivery, attempt)
        if attempt.succeeded and delivery.status is DeliveryStatus.RETRYING:
            await self._end_retries(webhook, delivery)
        return attempt

    async def _log(self, webhook: Webhook, delivery: WebhookDelivery, attempt: Attempt) -> None:
        entry = DeliveryLogEntry(
            event_id=delivery.event_id,
            status=DeliveryStatus.DELIVERED if attempt.succeeded else delivery.status,
            attempts=1,
            attempt=attempt,
            at_ms=attempt.at_ms,
            next_at_ms=None if attempt.succeeded else delivery.next_at_ms,
        )
        await self._storage.deliveries.log(
            [LoggedDelivery(webhook.webhook_id, webhook.spec.log_ms, entry)]
        )

    async def _end_retries(self, webhook: Webhook, delivery: WebhookDelivery) -> None:
        """Delete a message that waits for its next attempt; one being delivered now stays."""
        if webhook.spec.source.kind is SourceKind.QUEUE and delivery.location is not None:
            queue = QueueName(webhook.spec.source.name, webhook.name.namespace)
            with suppress(MillstreamError):
                await self._storage.inspector.drop(queue, delivery.event_id)

    @asynccontextmanager
    async def _sender(self, served: LeasedWebhook) -> AsyncGenerator[Sender]:
        if self._in_flight >= limits.WEBHOOK_MANUAL_DELIVERY_CONCURRENCY_MAX:
            raise WebhookBusy
        self._in_flight += 1
        try:
            sender = self._new_sender(served)
            try:
                yield sender
            finally:
                await sender.close()
        finally:
            self._in_flight -= 1

    def _new_sender(self, served: LeasedWebhook) -> Sender:
        """Return a sender. Raises ValidationFailed for a URL that an earlier version accepted."""
        try:
            return Sender(
                served=served,
                egress=self._egress,
                clock=self._clock,
                resolver=self._resolver,
            )
        except (httpx.InvalidURL, UnicodeError) as error:
            detail = f"The webhook's URL is not valid: {error}"
            raise ValidationFailed.at("/url", detail, "invalid") from None
