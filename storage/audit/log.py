"""Audit log of a deployment: intents, outcomes, and reads.

See `storage.domain.access.audit`.
"""

import logging
import uuid
from functools import partial

from storage.concurrency.isolation import Isolation
from storage.domain import limits
from storage.domain.access.audit import (
    UNKNOWN,
    AuditedCall,
    AuditFilter,
    AuditRecord,
    Snapshot,
    changes,
)
from storage.domain.clock import Clock
from storage.domain.errors import MillstreamError
from storage.postgres.database import Database
from storage.postgres.repositories.audit import AuditRows, Intent

logger = logging.getLogger(__name__)


class AuditLog:
    """The audit log, with every namespace's entries in one order.

    Nothing is ever deleted from it.
    """

    def __init__(self, database: Database, clock: Clock, isolation: Isolation) -> None:
        self._isolation = isolation
        self._rows = AuditRows(database)
        self._clock = clock

    def now_ms(self) -> int:
        """Return the time used for entries, in milliseconds."""
        return self._clock.now_ms()

    async def begin(self, request: AuditedCall, before: Snapshot | None) -> Intent:
        """Record that a call begins: a call that cannot be recorded is not executed.

        Raises StorageUnavailable, StorageBusy.
        """
        intent = Intent(uuid.uuid4().hex, request, before)
        await self._rows.intend(intent)
        return intent

    async def commit(
        self, intent: Intent, outcome: str, after: Snapshot | None, details: Snapshot | None = None
    ) -> None:
        """Append the outcome of a call; `details` is recorded if no definition changed.

        An outcome that cannot be written now is found by a sweep later, and recorded as unknown: the call is over.
        """
        was, became = changes(intent.before, after)
        if was is became is None:
            became = details
        try:
            await self._rows.conclude(intent.intent_id, intent.call, outcome, was, became)
        except MillstreamError as error:
            facts = {"reason": error.detail, "operation": intent.call.operation}
            logger.warning("audit_append_deferred", extra=facts)

    async def abort(self, intent: Intent) -> None:
        """Withdraw the intent of a call that changed nothing, so that it is not logged.

        Raises StorageUnavailable.
        """
        await self._rows.withdraw(intent.intent_id)

    async def record(
        self, request: AuditedCall, outcome: str, after: Snapshot | None = None
    ) -> AuditRecord:
        """Append a call without an intent: one that was rejected before it began.

        Raises StorageUnavailable.
        """
        return await self._rows.conclude(None, request, outcome, None, after)

    async def close_abandoned(self) -> int:
        """Append intents of processes that died before they concluded them, as unknown."""
        before_ms = self._clock.now_ms() - limits.AUDIT_INTENT_MS
        abandoned = await self._rows.abandoned(before_ms, limits.AUDIT_INTENTS_PER_ROUND)
        closed = [
            await self._isolation.visit(
                "audit",
                f"audit/{intent_id}",
                partial(self._rows.give_up, intent_id, UNKNOWN),
                False,
            )
            for intent_id in abandoned
        ]
        return sum(closed)

    async def page(
        self,
        query: AuditFilter,
        *,
        after: int | None = None,
        limit: int = limits.PAGE_ITEMS_DEFAULT,
        oldest_first: bool = False,
    ) -> list[AuditRecord]:
        """Return entries strictly beyond the number `after`.

        Below it, or above it if the oldest come first.
        """
        return await self._rows.page(query, after, limit, oldest_first=oldest_first)
