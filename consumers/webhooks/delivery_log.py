"""What deliverers tell the database, many at a time: the log of deliveries, and how webhooks do.

Entries wait some milliseconds for company and leave in one statement. The log is an account, not the truth: what
a deliverer had not written when it was killed is missing from it, though it was delivered.
"""

import asyncio
import logging

from storage.domain import limits
from storage.domain.errors import MillstreamError
from storage.domain.webhooks import Health, Lease, LogEntry, Logged, Webhook
from storage.webhooks.deliveries import Deliveries

logger = logging.getLogger(__name__)

_HEALTH_EVERY_S = 1.0


class Journal:
    """Takes entries, and writes them until it is closed."""

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries
        self._waiting: list[Logged] = []
        self._healths: dict[str, tuple[Lease, Health]] = {}
        self._some = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    async def note(self, webhook: Webhook, entry: LogEntry) -> None:
        """Add to the log; waits while too much is not written yet."""
        await self._room.wait()
        self._waiting.append(Logged(webhook.webhook_id, webhook.spec.log_ms, entry))
        self._some.set()
        if len(self._waiting) >= limits.WEBHOOK_LOG_BACKLOG_MAX:
            self._room.clear()

    def tell(self, lease: Lease, health: Health) -> None:
        """How a webhook does now."""
        self._healths[lease.webhook_id] = (lease, health)
        self._some.set()

    async def run(self) -> None:
        """Write until cancelled."""
        loop = asyncio.get_running_loop()
        told_at = 0.0
        while True:
            await self._some.wait()
            await asyncio.sleep(limits.WEBHOOK_LOG_FLUSH_MS / limits.SECOND_MS)
            try:
                while self._waiting:
                    await self._write_some()
                if loop.time() - told_at >= _HEALTH_EVERY_S:
                    told_at = loop.time()
                    await self._write_healths()
            except MillstreamError as error:
                logger.warning("deliveries not logged yet", extra={"reason": error.detail})
                await asyncio.sleep(_HEALTH_EVERY_S)
            if not self._waiting and not self._healths:
                self._some.clear()

    async def flush(self) -> None:
        """Write everything that waits now. Raises StorageUnavailable, and nothing is forgotten."""
        while self._waiting:
            await self._write_some()
        await self._write_healths()

    async def _write_some(self) -> None:
        """One statement's worth; an event that is there twice waits for the next."""
        some: dict[tuple[str, str], Logged] = {}
        left: list[Logged] = []
        for one in self._waiting:
            place = (one.webhook_id, one.entry.event_id)
            if len(some) < limits.WEBHOOK_LOG_FLUSH_ROWS and place not in some:
                some[place] = one
            else:
                left.append(one)
        writing, self._waiting = self._waiting, left
        try:
            await self._deliveries.log(list(some.values()))
        except MillstreamError:
            self._waiting = writing + self._waiting[len(left) :]
            raise
        except Exception:
            logger.exception("deliveries not logged", extra={"count": len(some)})
        if len(self._waiting) < limits.WEBHOOK_LOG_BACKLOG_MAX:
            self._room.set()

    async def _write_healths(self) -> None:
        told, self._healths = self._healths, {}
        if not told:
            return
        try:
            await self._deliveries.store_health(list(told.values()))
        except MillstreamError:
            self._healths = told | self._healths
            raise
