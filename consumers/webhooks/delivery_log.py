"""Batched writer of the delivery log and of webhooks' health.

Entries wait some milliseconds for others and are written in one statement. The log is a report, not the truth:
entries that a deliverer had not written when it was killed are missing from it, though the events were delivered.
"""

import asyncio
import logging

from storage.domain import limits
from storage.domain.errors import MillstreamError
from storage.domain.webhooks import (
    DeliveryHealth,
    DeliveryLogEntry,
    LoggedDelivery,
    Webhook,
    WebhookLease,
)
from storage.webhooks.deliveries import WebhookDeliveries

logger = logging.getLogger(__name__)

_HEALTH_EVERY_S = 1.0


class DeliveryLogWriter:
    """Write-behind log of entries, until it is closed."""

    def __init__(self, deliveries: WebhookDeliveries) -> None:
        self._deliveries = deliveries
        self._waiting: list[LoggedDelivery] = []
        self._healths: dict[str, tuple[WebhookLease, DeliveryHealth]] = {}
        self._pending = asyncio.Event()
        self._capacity = asyncio.Event()
        self._capacity.set()

    async def append(self, webhook: Webhook, entry: DeliveryLogEntry) -> None:
        """Add to the log; waits while the backlog is too large."""
        await self._capacity.wait()
        self._waiting.append(LoggedDelivery(webhook.webhook_id, webhook.spec.log_ms, entry))
        self._pending.set()
        if len(self._waiting) >= limits.WEBHOOK_LOG_BACKLOG_MAX:
            self._capacity.clear()

    def record_health(self, lease: WebhookLease, health: DeliveryHealth) -> None:
        """Record the current health of a webhook."""
        self._healths[lease.webhook_id] = (lease, health)
        self._pending.set()

    async def run(self) -> None:
        """Write until cancelled."""
        loop = asyncio.get_running_loop()
        told_at = 0.0
        while True:
            await self._pending.wait()
            await asyncio.sleep(limits.WEBHOOK_LOG_FLUSH_MS / limits.SECOND_MS)
            try:
                while self._waiting:
                    await self._write_some()
                if loop.time() - told_at >= _HEALTH_EVERY_S:
                    told_at = loop.time()
                    await self._write_healths()
            except MillstreamError as error:
                logger.warning("delivery_log_deferred", extra={"reason": error.detail})
                await asyncio.sleep(_HEALTH_EVERY_S)
            if not self._waiting and not self._healths:
                self._pending.clear()

    async def flush(self) -> None:
        """Write everything that waits now.

        Raises StorageUnavailable, and nothing is lost.
        """
        while self._waiting:
            await self._write_some()
        await self._write_healths()

    async def _write_some(self) -> None:
        """Write one statement's entries; an event that occurs twice waits for the next statement."""
        batch: dict[tuple[str, str], LoggedDelivery] = {}
        left: list[LoggedDelivery] = []
        for logged in self._waiting:
            place = (logged.webhook_id, logged.entry.event_id)
            if len(batch) < limits.WEBHOOK_LOG_FLUSH_ROWS and place not in batch:
                batch[place] = logged
            else:
                left.append(logged)
        writing, self._waiting = self._waiting, left
        try:
            await self._deliveries.log(list(batch.values()))
        except MillstreamError:
            self._waiting = writing + self._waiting[len(left) :]
            raise
        except Exception:
            logger.exception("delivery_log_failed", extra={"count": len(batch)})
        if len(self._waiting) < limits.WEBHOOK_LOG_BACKLOG_MAX:
            self._capacity.set()

    async def _write_healths(self) -> None:
        healths, self._healths = self._healths, {}
        if not healths:
            return
        try:
            await self._deliveries.store_health(list(healths.values()))
        except MillstreamError:
            self._healths = healths | self._healths
            raise
