"""Metrics of background work, which are too few to be buffered."""

from api.observability.metric_definitions import (
    MAINTENANCE_ITEMS,
    MAINTENANCE_LAST_SUCCESS,
    MAINTENANCE_LEADERS,
    MAINTENANCE_ROUNDS,
    MAINTENANCE_SECONDS,
    MESSAGES_DELIVERED,
    STORE_FAILOVERS,
    TOPIC_COPIES,
    WEBHOOK_ATTEMPTS,
    WEBHOOK_ENDPOINTS_DISABLED,
)
from consumers.maintenance.scheduler import TaskOutcome
from storage.domain import limits
from storage.domain.clock import Clock, SystemClock
from storage.domain.presence import LeaseStore
from storage.domain.replication.replica_set import PrimaryChange
from storage.domain.topics.routing import RouteCounts
from storage.domain.webhooks import AttemptOutcome, SourceKind

_SYSTEM_CLOCK = SystemClock()


_PRIMARY_CHANGES = {kind: STORE_FAILOVERS.labels(kind.value) for kind in PrimaryChange}
"""Counters that exist before the first change, so that it is seen as an increase."""


def count_primary_change(kind: PrimaryChange) -> None:
    """Count a change of the primary of replicated stores."""
    _PRIMARY_CHANGES[kind].inc()


class SweeperMetrics:
    """Metrics of the tasks that a sweeper runs, and of what it leads."""

    def __init__(self, clock: Clock = _SYSTEM_CLOCK) -> None:
        self._clock = clock

    def ran(self, task: str, outcome: TaskOutcome, seconds: float, items: int) -> None:
        """Count a round of a task, and the amount of work there was."""
        MAINTENANCE_ROUNDS.labels(task, outcome.value).inc()
        MAINTENANCE_SECONDS.labels(task).inc(seconds)
        MAINTENANCE_ITEMS.labels(task).inc(items)
        if outcome is TaskOutcome.COMPLETED:
            MAINTENANCE_LAST_SUCCESS.labels(task).set(self._clock.now_ms() / limits.SECOND_MS)

    def leads(self, store: LeaseStore, *, leads: bool) -> None:
        """Set whether this process leads the tasks of a store."""
        MAINTENANCE_LEADERS.labels(store.value).set(leads)


class RouterMetrics:
    """Metrics of a router."""

    def __init__(self) -> None:
        self._copies = {
            outcome: TOPIC_COPIES.labels(outcome)
            for outcome in ("delivered", "dropped", "dead_lettered")
        }

    def finished(self, counts: RouteCounts) -> None:
        """Count the copies of a route whose position was stored."""
        for outcome, copies in self._copies.items():
            if number := getattr(counts, outcome):
                copies.inc(number)


class WebhookMetrics:
    """Metrics of a webhook deliverer."""

    def __init__(self) -> None:
        self._attempts = {
            outcome: WEBHOOK_ATTEMPTS.labels(outcome.value) for outcome in AttemptOutcome
        }
        self._delivered = {
            kind: MESSAGES_DELIVERED.labels(noun, "webhook", "manual")
            for kind, noun in _NOUNS.items()
        }

    def attempted(self, kind: SourceKind, outcome: AttemptOutcome) -> None:
        """Count a finished request to a receiver."""
        self._attempts[outcome].inc()
        self._delivered[kind].inc()

    def disabled(self, count: int) -> None:
        """Set the number of webhooks that the service has disabled."""
        WEBHOOK_ENDPOINTS_DISABLED.set(count)


_NOUNS = {SourceKind.QUEUE: "queue", SourceKind.GROUP: "stream"}
