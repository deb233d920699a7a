"""The audit log of a deployment: what was begun, what became of it, and reading it. See `storage.domain.access.audit`."""

import logging
import uuid

from storage.domain import limits
from storage.domain.access.audit import UNKNOWN, Asked, Entry, Shown, Wanted, changes
from storage.domain.clock import Clock
from storage.domain.errors import MillstreamError
from storage.postgres.database import Database
from storage.postgres.repositories.audit import AuditRows, Intent

logger = logging.getLogger(__name__)


class Audit:
    """The log. It holds every namespace's entries in one order, and nothing is ever deleted from it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._rows = AuditRows(database)
        self._clock = clock

    def now_ms(self) -> int:
        """The time that entries go by."""
        return self._clock.now_ms()

    async def intend(self, asked: Asked, before: Shown | None) -> Intent:
        """Note that a call begins: what is not noted is not done. Raises StorageUnavailable, StorageBusy."""
        intent = Intent(uuid.uuid4().hex, asked, before)
        await self._rows.intend(intent)
        return intent

    async def conclude(
        self, intent: Intent, outcome: str, after: Shown | None, told: Shown | None = None
    ) -> None:
        """Append what became of it. `told`: what there is to say where the definition is as it was.

        What cannot be written now is found by a sweep later, and told as unknown: the call is over.
        """
        was, became = changes(intent.before, after)
        if was is became is None:
            became = told
        try:
            await self._rows.conclude(intent.intent_id, intent.asked, outcome, was, became)
        except MillstreamError as error:
            facts = {"reason": error.detail, "operation": intent.asked.operation}
            logger.warning("audit entry put off", extra=facts)

    async def withdraw(self, intent: Intent) -> None:
        """It changed nothing, and is not told. Raises StorageUnavailable."""
        await self._rows.withdraw(intent.intent_id)

    async def record(self, asked: Asked, outcome: str, after: Shown | None = None) -> Entry:
        """Append a call that had no intent: one that was refused at the door. Raises StorageUnavailable."""
        return await self._rows.conclude(None, asked, outcome, None, after)

    async def close_abandoned(self) -> int:
        """Append what processes did not live to conclude, as unknown."""
        before_ms = self._clock.now_ms() - limits.AUDIT_INTENT_MS
        found = await self._rows.abandoned(before_ms, limits.AUDIT_INTENTS_PER_ROUND)
        closed = [await self._rows.give_up(intent_id, UNKNOWN) for intent_id in found]
        return sum(closed)

    async def page(
        self,
        wanted: Wanted,
        *,
        after: int | None = None,
        limit: int = limits.PAGE_ITEMS_DEFAULT,
        oldest_first: bool = False,
    ) -> list[Entry]:
        """Entries, strictly beyond the number `after`: below it, or above it where the oldest come first."""
        return await self._rows.page(wanted, after, limit, oldest_first=oldest_first)
