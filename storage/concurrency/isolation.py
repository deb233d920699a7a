"""Isolation of the objects that a loop serves: one that fails delays no other.

    visit(object) ─ raises ─▶ logged once, listed in `failing` ─▶ skipped for a growing back-off ─▶ visited again
                                        ▲                                                              │
                                        └───────────────────────── raises ◀────────────────────────────┤
                                                        removed from `failing` ◀────────── succeeds ───┘

A failure of the store is not the object's: it is neither logged nor listed for it, and the next round visits it again. The
others are visited all the same, since one server of a cluster may be down; but once none was served for a while, the
failure is raised and ends the round, which the caller repeats.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from cachetools import FIFOCache
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    MillstreamError,
    OutcomeUnknown,
    StorageBusy,
    StorageFull,
    StorageUnavailable,
)
from storage.domain.presence import FailingObject

logger = logging.getLogger(__name__)

T = TypeVar("T")

_STORE_FAILURES = (StorageUnavailable, StorageBusy, StorageFull, OutcomeUnknown)


class _Outage(NamedTuple):
    """Failures of the store since a task last served an object."""

    since_ms: int
    failures: int


class Isolation:
    """Visits to objects by the tasks of one process, and the objects whose visits fail."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failing: FIFOCache[tuple[str, str], FailingObject] = FIFOCache(
            limits.ISOLATED_FAILURES_MAX
        )
        self._outages: dict[str, _Outage] = {}

    @property
    def failing(self) -> tuple[FailingObject, ...]:
        """The objects whose last visit failed, the longest failing first; deleted ones leave."""
        since_ms = self._clock.now_ms() - limits.ISOLATED_FAILURE_AGE_MS
        for key, entry in list(self._failing.items()):
            if entry.visited_at_ms <= since_ms:
                del self._failing[key]
        return tuple(sorted(self._failing.values(), key=lambda entry: entry.since_ms))

    async def visit(
        self, task: str, subject: str, work: Callable[[], Awaitable[T]], skipped: T
    ) -> T:
        """Run `work` for one object; return `skipped` if it fails, or backs off from a failure.

        `subject` names the object, as in `queues/orders`. Raises StorageUnavailable, StorageBusy, StorageFull and
        OutcomeUnknown when the store fails for one object after another.
        """
        entry = self._failing.get((task, subject))
        now_ms = self._clock.now_ms()
        if entry is not None and entry.visited_at_ms <= now_ms < _retry_at_ms(entry):
            return skipped
        try:
            result = await work()
        except _STORE_FAILURES:
            if self._is_store_down(task):
                raise
            return skipped
        except Exception as error:
            self._outages.pop(task, None)
            self._record(task, subject, error)
            return skipped
        self._outages.pop(task, None)
        if self._failing.pop((task, subject), None) is not None:
            logger.info("object_recovered", extra={"task": task, "object": subject})
        return result

    def _is_store_down(self, task: str) -> bool:
        """Count a failure of the store; return whether it served nothing of the task for a while."""
        now_ms = self._clock.now_ms()
        since_ms, failures = self._outages.get(task, _Outage(now_ms, 0))
        self._outages[task] = _Outage(since_ms, failures + 1)
        has_lasted = now_ms - since_ms >= limits.ISOLATED_STORE_OUTAGE_MS
        return has_lasted and failures >= limits.ISOLATED_STORE_FAILURES_MAX

    def _record(self, task: str, subject: str, error: Exception) -> None:
        now_ms = self._clock.now_ms()
        reason = error.detail if isinstance(error, MillstreamError) else repr(error)
        reason = reason[: limits.ISOLATED_REASON_CHARACTERS_MAX]
        entry = self._failing.pop((task, subject), None)
        if entry is None:
            facts = {"task": task, "object": subject, "reason": reason}
            unexpected = not isinstance(error, MillstreamError)
            logger.warning("object_failed", extra=facts, exc_info=error if unexpected else None)
            entry = FailingObject(task, subject, reason, now_ms, now_ms)
        else:
            entry = replace(entry, reason=reason, visited_at_ms=now_ms, failures=entry.failures + 1)
        self._failing[task, subject] = entry


def _retry_at_ms(entry: FailingObject) -> int:
    doublings = min(entry.failures, limits.ISOLATION_BACKOFF_DOUBLINGS_MAX)
    return entry.visited_at_ms + (limits.ISOLATION_BACKOFF_MS << (doublings - 1))
