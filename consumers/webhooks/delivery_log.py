"""Write-behind delivery log and health of webhooks.

Rows wait some milliseconds for others and are written in one statement; while Postgres is unreachable they are written
again, and a full backlog delays deliveries. The log is a report, not the truth: rows that a deliverer had not written when
it was killed are missing from it, though the events were delivered.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

from storage.concurrency.batcher import Batcher
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
_RETRY_S = 1.0

LeasedHealth = tuple[WebhookLease, DeliveryHealth]


class DeliveryLogWriter:
    """Write-behind log of entries, until it is closed."""

    def __init__(self, deliveries: WebhookDeliveries) -> None:
        self._deliveries = deliveries
        self._closing = asyncio.Event()
        self._is_unreachable = False
        self._rows = Batcher[LoggedDelivery, None](
            self._write_rows,
            batch_max=limits.WEBHOOK_LOG_FLUSH_ROWS,
            backlog_max=limits.WEBHOOK_LOG_BACKLOG_MAX,
            linger_s=limits.WEBHOOK_LOG_FLUSH_MS / limits.SECOND_MS,
        )
        self._healths = Batcher[LeasedHealth, None](
            self._write_healths,
            batch_max=limits.WEBHOOK_LOG_BACKLOG_MAX,
            linger_s=_HEALTH_EVERY_S,
        )

    async def append(self, webhook: Webhook, entry: DeliveryLogEntry) -> None:
        """Add to the log; waits while the backlog is too large."""
        await self._rows.add(LoggedDelivery(webhook.webhook_id, webhook.spec.log_ms, entry))

    def record_health(self, lease: WebhookLease, health: DeliveryHealth) -> None:
        """Record the current health of a webhook."""
        self._healths.put((lease, health))

    async def flush(self) -> None:
        """Wait until everything that was recorded is written."""
        await self._rows.finish()
        await self._healths.finish()

    async def close(self) -> None:
        """Write what is left, once: if Postgres is unreachable it is lost."""
        self._closing.set()
        await self.flush()

    async def _write_rows(self, rows: Sequence[LoggedDelivery]) -> None:
        """Write rows; an event that occurs twice waits for the next statement."""
        left = list(rows)
        while left:
            statement: dict[tuple[str, str], LoggedDelivery] = {}
            for row in left:
                statement.setdefault((row.webhook_id, row.entry.event_id), row)
            left = [row for row in left if statement[row.webhook_id, row.entry.event_id] is not row]
            await self._write(partial(self._deliveries.log, list(statement.values())))

    async def _write_healths(self, healths: Sequence[LeasedHealth]) -> None:
        """Write the last health of each webhook."""
        last = {lease.webhook_id: (lease, health) for lease, health in healths}
        await self._write(partial(self._deliveries.store_health, list(last.values())))

    async def _write(self, statement: Callable[[], Awaitable[object]]) -> None:
        """Execute a statement, again until it succeeds or the writer closes."""
        while not self._is_unreachable:
            try:
                await statement()
            except MillstreamError as error:
                logger.warning("delivery_log_deferred", extra={"reason": error.detail})
                if self._closing.is_set():
                    self._is_unreachable = True
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(_RETRY_S):
                        await self._closing.wait()
            else:
                return
