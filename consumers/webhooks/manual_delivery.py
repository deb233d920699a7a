"""Deliveries on request: one again, or a test.

Sent by the process that receives the request, immediately and once.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

import httpx
import msgspec

from consumers.webhooks.http_sender import Sender
from consumers.webhooks.ssrf_guard import Resolve, resolve
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.egress import Egress
from storage.domain.clock import Clock, SystemClock
from storage.domain.errors import (
    DeliveryNotFound,
    MillstreamError,
    PayloadGone,
    ValidationFailed,
    WebhookBusy,
)
from storage.domain.names import QueueName, WebhookName
from storage.domain.webhooks import (
    Attempt,
    DeliveryFilter,
    DeliveryLogEntry,
    DeliveryStatus,
    Event,
    LeasedWebhook,
    LoggedDelivery,
    SourceKind,
    Webhook,
    WebhookDelivery,
    WebhookSpec,
)

_CLOCK = SystemClock()
Seen = tuple[int, str]
"""Position in the log: the first attempt of a delivery, and its event's id."""


class Resends(NamedTuple):
    """Attempts of a round of resends, None where the payload is gone.

    `after`: the last delivery of the round, after which the next round begins; None if there are no more.
    """

    attempts: list[Attempt | None]
    after: Seen | None


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
        logged = await self._storage.deliveries.event(served.webhook, event_id)
        async with self._sender(served) as sender:
            return await self._post(sender, served.webhook, *logged)

    async def _post(
        self, sender: Sender, webhook: Webhook, delivery: WebhookDelivery, event: Event
    ) -> Attempt:
        attempt = await sender.post(event, delivery.attempts + 1, resent=True)
        await self._log(webhook, delivery, attempt)
        if attempt.succeeded and delivery.status is DeliveryStatus.RETRYING:
            await self._end_retries(webhook, delivery)
        return attempt

    async def resend_matching(
        self, name: WebhookName, delivery_filter: DeliveryFilter, *, after: Seen | None, limit: int
    ) -> Resends:
        """Resend deliveries, the newest first: a round of at most `limit`, for a bounded time.

        Some are sent at the same time, as many as the webhook allows, at most at its rate. One that cannot be sent does not stop
        the others. Raises WebhookNotFound, WebhookBusy.
        """
        served = await self._storage.webhooks.opened(name)
        webhook = served.webhook
        deliveries = await self._storage.deliveries.page(
            webhook, delivery_filter, after=after, limit=limit
        )
        concurrency = _concurrency_of(webhook.spec)
        deadline_ms = self._clock.now_ms() + limits.WEBHOOK_RESEND_MS_MAX
        attempts: list[Attempt | None] = []
        async with self._sender(served) as sender:
            for first in range(0, len(deliveries), concurrency):
                if first and self._clock.now_ms() >= deadline_ms:
                    break
                together = deliveries[first : first + concurrency]
                attempts += await self._resend_paced(sender, webhook, together)
        sent = deliveries[: len(attempts)]
        is_last = len(sent) == len(deliveries) < limit
        return Resends(attempts, None if is_last else (sent[-1].first_at_ms, sent[-1].event_id))

    async def _resend_paced(
        self, sender: Sender, webhook: Webhook, deliveries: Sequence[WebhookDelivery]
    ) -> list[Attempt | None]:
        """Resend deliveries at the same time, in no less time than the webhook's rate allows.

        A round has at least one, however low the rate is.
        """
        pause_s = len(deliveries) / webhook.spec.rate if webhook.spec.rate else 0.0
        pause_s = min(pause_s, limits.WEBHOOK_RESEND_MS_MAX / limits.SECOND_MS)
        attempts, _ = await asyncio.gather(
            asyncio.gather(*(self._resend_one(sender, webhook, one) for one in deliveries)),
            asyncio.sleep(pause_s),
        )
        return list(attempts)

    async def _resend_one(
        self, sender: Sender, webhook: Webhook, delivery: WebhookDelivery
    ) -> Attempt | None:
        """Resend a delivery; None if its payload is gone."""
        try:
            logged = await self._storage.deliveries.event(webhook, delivery.event_id)
        except (DeliveryNotFound, PayloadGone):
            return None
        return await self._post(sender, webhook, *logged)

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


def _concurrency_of(spec: WebhookSpec) -> int:
    """Return how many deliveries are resent at the same time: at most those of one second."""
    most = min(spec.in_flight_max, limits.WEBHOOK_RESEND_CONCURRENCY_MAX)
    return most if spec.rate is None else max(1, min(most, int(spec.rate)))
