"""Webhook leases, deliverers' reports, and the delivery log.

deliverer: beat ──▶ what it holds, and its share ──▶ claim more, or release some
one that is silent for WEBHOOK_LEASE_MS loses what it holds; the epoch of a lease fences its former holder
"""

import logging
from collections.abc import Sequence
from functools import partial

import attrs

from storage.concurrency.isolation import Isolation
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    DeliveryNotFound,
    MillstreamError,
    OffsetOutOfRange,
    PayloadGone,
    ShardNotFound,
    StreamNotFound,
)
from storage.domain.log.record_batch import CONTENT_TYPE, Headers
from storage.domain.names import GroupName, LogId, QueueName, StreamName
from storage.domain.streams.stream import ReadFrom, Stream
from storage.domain.webhooks import (
    DeliveryFilter,
    DeliveryHealth,
    DeliveryStatus,
    DisabledReason,
    Event,
    LeasedWebhook,
    LoggedDelivery,
    Payload,
    Source,
    SourceKind,
    Webhook,
    WebhookDelivery,
    WebhookLease,
    record_event_id,
)
from storage.groups.engine import Groups
from storage.postgres.repositories.webhook_deliveries import (
    DeliveryRows,
    RenewedLease,
    Seen,
    Shares,
)
from storage.postgres.repositories.webhooks import SealedSecret, StoredWebhook
from storage.queues.dead_letters import QueueDeadLetters
from storage.queues.inspection import QueueInspector
from storage.streams.read import RecordReader
from storage.webhooks.changes import WebhookChanges
from storage.webhooks.secrets import WebhookSecrets

logger = logging.getLogger(__name__)

_ALL = DeliveryFilter()

KINDS = {SourceKind.QUEUE: "queue.message", SourceKind.GROUP: "stream.record"}
"""Event types by source."""


@attrs.define(eq=False, slots=False, kw_only=True)
class WebhookDeliveries:
    """Deliverers' calls, and the delivery log.

    Every method raises StorageUnavailable or StorageBusy, and may then be repeated.
    """

    _rows: DeliveryRows
    _inspector: QueueInspector
    _dead_letters: QueueDeadLetters
    _reader: RecordReader
    _groups: Groups
    _secrets: WebhookSecrets
    _clock: Clock
    _isolation: Isolation
    changes: WebhookChanges

    # Leases

    async def heartbeat(self, deliverer: str) -> list[RenewedLease]:
        """Send a deliverer's heartbeat and renew its leases; return those that it still holds."""
        return await self._rows.beat(deliverer, limits.WEBHOOK_LEASE_MS, self._now())

    async def shares(self) -> Shares:
        """Return the number of deliverers and the number of webhooks to share among them."""
        return await self._rows.shares(limits.WEBHOOK_LEASE_MS, self._now())

    async def claim(self, deliverer: str, count: int) -> list[LeasedWebhook]:
        """Claim up to `count` webhooks that no deliverer serves.

        One whose secrets cannot be read here is released again, so that another process may try.
        """
        claimed = await self._rows.claim(deliverer, count, limits.WEBHOOK_LEASE_MS, self._now())
        served, unreadable = [], []
        for stored, secrets in claimed:
            leased = await self._isolation.visit(
                "claim",
                f"webhooks/{stored.webhook.name}",
                partial(self._decrypt, stored, secrets),
                None,
            )
            if leased is None:
                unreadable.append(stored.webhook.webhook_id)
            else:
                served.append(leased)
        if unreadable:
            await self._rows.release(deliverer, unreadable)
        return served

    async def _decrypt(
        self, stored: StoredWebhook, secrets: Sequence[SealedSecret]
    ) -> LeasedWebhook:
        return self._secrets.decrypt(stored, secrets)

    async def release(self, deliverer: str, webhook_ids: Sequence[str]) -> None:
        """Release the leases of these webhooks, so that other deliverers may serve them."""
        await self._rows.release(deliverer, webhook_ids)

    async def deregister(self, deliverer: str) -> None:
        """Remove a deliverer permanently, after it released its leases."""
        await self._rows.remove_deliverer(deliverer, limits.DAY_MS)

    def _now(self) -> int | None:
        """Return the time for queries, or None to use the database's, so that all processes agree."""
        script_time = self._clock.script_time()
        return int(script_time) if script_time else None

    # Reports of lease holders

    async def disable(
        self, lease: WebhookLease, because: DisabledReason, health: DeliveryHealth
    ) -> bool:
        """Disable a webhook; return False if another deliverer has its lease by now."""
        return await self._rows.disable(lease, because, health, self._clock.now_ms())

    async def store_health(self, reports: Sequence[tuple[WebhookLease, DeliveryHealth]]) -> None:
        """Store the health of webhooks."""
        await self._rows.store_health(reports)

    async def log(self, entries: Sequence[LoggedDelivery]) -> None:
        """Add to the log: each event of a webhook at most once in a call."""
        await self._rows.log(entries)

    # Delivery log

    async def find(self, webhook: Webhook, event_id: str) -> WebhookDelivery | None:
        """Return a delivery of the log, or None."""
        return await self._rows.find(webhook.webhook_id, event_id)

    async def page(
        self,
        webhook: Webhook,
        delivery_filter: DeliveryFilter = _ALL,
        *,
        after: Seen | None = None,
        limit: int = limits.PAGE_ITEMS_DEFAULT,
    ) -> list[WebhookDelivery]:
        """Return deliveries, the newest first, strictly after `after`.

        `after` is (first_at_ms, event id) of the last one seen.
        """
        return await self._rows.page(webhook.webhook_id, delivery_filter, after=after, limit=limit)

    async def count(self, webhook: Webhook, delivery_filter: DeliveryFilter) -> int:
        """Count deliveries, at most WEBHOOK_DELIVERIES_COUNTED_MAX."""
        return await self._rows.count(
            webhook.webhook_id, delivery_filter, limits.WEBHOOK_DELIVERIES_COUNTED_MAX
        )

    async def of_message(
        self, queue: QueueName, message_id: str
    ) -> list[tuple[str, WebhookDelivery]]:
        """Return the deliveries of a queue's message, with the names of their webhooks."""
        sources = [str(Source(SourceKind.QUEUE, queue.name))]
        return await self._rows.of_event(
            queue.namespace, sources, message_id, limits.PAGE_ITEMS_DEFAULT
        )

    async def of_record(
        self, stream: Stream, shard: int, offset: int
    ) -> list[tuple[str, WebhookDelivery]]:
        """Return the deliveries of a record, with the names of their webhooks."""
        groups = await self._groups.of_stream(stream)
        sources = [str(Source(SourceKind.GROUP, group.name.name)) for group in groups]
        event_id = record_event_id(stream.stream_id, shard, offset)
        return await self._rows.of_event(
            stream.name.namespace, sources, event_id, limits.PAGE_ITEMS_DEFAULT
        )

    async def delete_old(self) -> int:
        """Run one bounded round of log retention, for the sweeper; return the deleted entries."""
        return await self._rows.delete_expired(self._clock.now_ms(), limits.WEBHOOK_LOG_DELETES)

    async def event(self, webhook: Webhook, event_id: str) -> tuple[WebhookDelivery, Event]:
        """Return a delivery and its event, with the payload from its source or from the log.

        Raises DeliveryNotFound, PayloadGone.
        """
        delivery = await self.find(webhook, event_id)
        if delivery is None or delivery.status is DeliveryStatus.GAP:
            raise DeliveryNotFound(f"The log has no delivery '{event_id}' to resend.")
        stream = await self.stream_of(webhook)
        payload = delivery.payload or await self._payload(webhook, delivery, stream)
        if payload is None:
            raise PayloadGone
        source = webhook.spec.source
        return delivery, Event(
            event_id=event_id,
            kind=KINDS[source.kind],
            source=str(source),
            payload=payload.body,
            content_type=payload.content_type,
            headers=payload.headers,
            at_ms=delivery.event_at_ms,
            location=delivery.location,
            key=delivery.key,
            group=delivery.group,
            stream=stream,
        )

    async def stream_of(self, webhook: Webhook) -> str:
        """Return the stream of a webhook of a group; empty for that of a queue, or if it is gone."""
        if webhook.spec.source.kind is SourceKind.QUEUE:
            return ""
        try:
            name = GroupName(webhook.spec.source.name, webhook.name.namespace)
            return (await self._groups.get(name)).spec.stream
        except MillstreamError:
            return ""

    async def _payload(
        self, webhook: Webhook, delivery: WebhookDelivery, stream: str
    ) -> Payload | None:
        if delivery.location is None:
            return None
        if webhook.spec.source.kind is SourceKind.QUEUE:
            queue = QueueName(webhook.spec.source.name, webhook.name.namespace)
            return await self._message(queue, str(delivery.location.offset), delivery.event_id)
        if not stream or delivery.location.shard is None:
            return None
        name = StreamName(stream, webhook.name.namespace)
        stream_id = delivery.event_id.partition("-")[0]
        location = delivery.location
        return await self._record(name, stream_id, location.shard or 0, location.offset)

    async def _message(self, queue: QueueName, word: str, message_id: str) -> Payload | None:
        for look in (self._inspector.show, self._dead_letters.get):
            try:
                message = await look(queue, word)
            except MillstreamError:
                continue
            if message.message_id == message_id:
                return Payload(message.body, message.content_type, message.headers)
        return None

    async def _record(
        self, stream: StreamName, stream_id: LogId, shard: int, offset: int
    ) -> Payload | None:
        where = ReadFrom(offset=offset)
        try:
            read = await self._reader.read_one(stream, shard, where, stream_id)
        except (OffsetOutOfRange, ShardNotFound, StreamNotFound):
            return None
        records = [one for one in read.records if one.offset == offset]
        if not records:
            return None
        headers, content_type = without_own(records[0].record.headers)
        return Payload(records[0].record.data, content_type, headers)


def without_own(headers: Headers) -> tuple[Headers, str]:
    """Split a record's headers into those of its writer and the content type."""
    others = tuple(header for header in headers if header[0] != CONTENT_TYPE)
    content_types = [value for name, _, value in headers if name == CONTENT_TYPE]
    return others, content_types[0].decode(errors="replace") if content_types else ""
