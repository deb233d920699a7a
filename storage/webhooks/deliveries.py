"""Serving webhooks: leases on them, what their deliverers say of them, and the log of what was delivered.

deliverer: beat ──▶ what it holds, and its share ──▶ claim more, or release some
one that is silent for WEBHOOK_LEASE_MS loses what it holds; the epoch of a lease fences its former holder
"""

import logging
from collections.abc import Sequence

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    DeliveryNotFound,
    MillstreamError,
    OffsetOutOfRange,
    PayloadGone,
    SecretsOff,
    SecretUnreadable,
    ShardNotFound,
    StreamNotFound,
)
from storage.domain.log.record_batch import CONTENT_TYPE, Headers
from storage.domain.names import GroupName, QueueName, StreamName
from storage.domain.streams.stream import ReadFrom
from storage.domain.webhooks import (
    Delivery,
    DeliveryStatus,
    DisabledBecause,
    Event,
    Health,
    Lease,
    Logged,
    Payload,
    Served,
    SourceKind,
    Webhook,
)
from storage.groups.engine import Groups
from storage.postgres.database import Database
from storage.postgres.repositories.webhook_deliveries import DeliveryRows, Held, Seen, Shares
from storage.queues.inspection import Contents
from storage.streams.engine import Streams
from storage.webhooks.engine import Opener

logger = logging.getLogger(__name__)

KINDS = {SourceKind.QUEUE: "queue.message", SourceKind.GROUP: "stream.record"}
"""What an event says it is."""


class Deliveries:
    """What a deliverer asks and says, and what is known of deliveries.

    Every method raises StorageUnavailable or StorageBusy, and may then be repeated.
    """

    def __init__(
        self,
        database: Database,
        contents: Contents,
        streams: Streams,
        groups: Groups,
        opener: Opener,
        clock: Clock,
    ) -> None:
        self._rows = DeliveryRows(database)
        self._contents = contents
        self._streams = streams
        self._groups = groups
        self._opener = opener
        self._clock = clock

    # Leases

    async def beat(self, deliverer: str) -> list[Held]:
        """Say that a deliverer is there, and renew its leases; those that it still holds."""
        return await self._rows.beat(deliverer, limits.WEBHOOK_LEASE_MS, self._now())

    async def shares(self) -> Shares:
        """Among how many deliverers how many webhooks are to be shared."""
        return await self._rows.shares(limits.WEBHOOK_LEASE_MS, self._now())

    async def claim(self, deliverer: str, wanted: int) -> list[Served]:
        """Take up to so many webhooks that nobody serves.

        One whose secrets cannot be read here is let go again, so that another process may try.
        """
        claimed = await self._rows.claim(deliverer, wanted, limits.WEBHOOK_LEASE_MS, self._now())
        served, unreadable = [], []
        for stored, secrets in claimed:
            try:
                served.append(self._opener.open(stored, secrets))
            except (SecretUnreadable, SecretsOff) as error:
                unreadable.append(stored.webhook.webhook_id)
                logger.warning(
                    "webhook not served",
                    extra={"webhook": str(stored.webhook.name), "reason": error.detail},
                )
        if unreadable:
            await self._rows.release(deliverer, unreadable)
        return served

    async def release(self, deliverer: str, webhook_ids: Sequence[str]) -> None:
        """Let others serve these."""
        await self._rows.release(deliverer, webhook_ids)

    async def leave(self, deliverer: str) -> None:
        """A deliverer goes for good, having released what it held."""
        await self._rows.forget_deliverer(deliverer, limits.DAY_MS)

    def _now(self) -> int | None:
        """The time as queries take it: None for the database's own, so that all processes agree."""
        told = self._clock.script_time()
        return int(told) if told else None

    # What a holder says

    async def disable(self, lease: Lease, because: DisabledBecause, health: Health) -> bool:
        """Switch a webhook off; False where it is another's by now."""
        return await self._rows.disable(lease, because, health, self._clock.now_ms())

    async def store_health(self, told: Sequence[tuple[Lease, Health]]) -> None:
        """Store how webhooks do."""
        await self._rows.store_health(told)

    async def log(self, told: Sequence[Logged]) -> None:
        """Add to the log: each event of a webhook at most once in a call."""
        await self._rows.log(told)

    # What is known

    async def find(self, webhook: Webhook, event_id: str) -> Delivery | None:
        """A delivery of the log, or None."""
        return await self._rows.find(webhook.webhook_id, event_id)

    async def page(
        self,
        webhook: Webhook,
        *,
        status: DeliveryStatus | None = None,
        event_id: str | None = None,
        from_ms: int | None = None,
        to_ms: int | None = None,
        after: Seen | None = None,
        limit: int = limits.PAGE_ITEMS_DEFAULT,
    ) -> list[Delivery]:
        """Deliveries, the newest first, strictly after `after`: (first_at_ms, event id) of the last one seen."""
        return await self._rows.page(
            webhook.webhook_id,
            status=status,
            event_id=event_id,
            from_ms=from_ms,
            to_ms=to_ms,
            after=after,
            limit=limit,
        )

    async def forget_old(self) -> int:
        """One bounded round of upkeep, for the sweep; gives how many went."""
        return await self._rows.forget(self._clock.now_ms(), limits.WEBHOOK_LOG_DELETES)

    async def event(self, webhook: Webhook, event_id: str) -> tuple[Delivery, Event]:
        """A delivery, and what it delivered: from where it lies, or from what was kept beside the log.

        Raises DeliveryNotFound, PayloadGone.
        """
        delivery = await self.find(webhook, event_id)
        if delivery is None or delivery.status is DeliveryStatus.GAP:
            raise DeliveryNotFound(
                f"The log has no delivery '{event_id}' that could be sent again."
            )
        stream = await self._stream_of(webhook)
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
            place=delivery.place,
            key=delivery.key,
            group=delivery.group,
            stream=stream,
        )

    async def _stream_of(self, webhook: Webhook) -> str:
        if webhook.spec.source.kind is SourceKind.QUEUE:
            return ""
        try:
            name = GroupName(webhook.spec.source.name, webhook.name.namespace)
            return (await self._groups.get(name)).spec.stream
        except MillstreamError:
            return ""

    async def _payload(self, webhook: Webhook, delivery: Delivery, stream: str) -> Payload | None:
        if delivery.place is None:
            return None
        if webhook.spec.source.kind is SourceKind.QUEUE:
            queue = QueueName(webhook.spec.source.name, webhook.name.namespace)
            return await self._message(queue, str(delivery.place.offset), delivery.event_id)
        if not stream or delivery.place.shard is None:
            return None
        name = StreamName(stream, webhook.name.namespace)
        return await self._record(name, delivery.place.shard, delivery.place.offset)

    async def _message(self, queue: QueueName, word: str, message_id: str) -> Payload | None:
        for look in (self._contents.message, self._contents.dead_letter):
            try:
                found = await look(queue, word)
            except MillstreamError:
                continue
            if found.message_id == message_id:
                return Payload(found.body, found.content_type, found.headers)
        return None

    async def _record(self, stream: StreamName, shard: int, offset: int) -> Payload | None:
        try:
            read = await self._streams.read_shard(
                stream, shard, ReadFrom(offset=offset), records_max=1, bytes_max=1
            )
        except (OffsetOutOfRange, ShardNotFound, StreamNotFound):
            return None
        found = [one for one in read.records if one.offset == offset]
        if not found:
            return None
        headers, content_type = without_own(found[0].record.headers)
        return Payload(found[0].record.data, content_type, headers)


def without_own(headers: Headers) -> tuple[Headers, str]:
    """A record's headers without the content type that is among them, and that."""
    kept = tuple(header for header in headers if header[0] != CONTENT_TYPE)
    told = [value for name, _, value in headers if name == CONTENT_TYPE]
    return kept, told[0].decode(errors="replace") if told else ""
