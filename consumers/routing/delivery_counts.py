"""Counts of what a router has finished for each route since its last report."""

from collections.abc import Iterable, Mapping, Sequence

from consumers.routing.copies import Copy
from storage.domain.topics.routing import RouteCounts

ROUTE_DELETED = "The route was deleted."
"""Reason why the messages that a deleted route still waits for are dropped."""


class DeliveryCounts:
    """Counts of the routes of a topic, by their numbers; all buffers of a router add to them."""

    def __init__(self) -> None:
        self._by_number: dict[int, RouteCounts] = {}

    def add_delivered(self, copies: Sequence[Copy]) -> None:
        """Count copies that the target has."""
        for copy in copies:
            counts = self._of(copy)
            counts.delivered += 1
            counts.failure = ""

    def add_shadowed(self, copies: Iterable[Copy]) -> None:
        """Count copies of shadow routes, which nothing receives."""
        for copy in copies:
            self._of(copy).shadowed += 1

    def add_dead_lettered(self, copies: Sequence[Copy], reason: str | None) -> None:
        """Count messages that are in a dead-letter queue; None leaves the last failure."""
        for copy in copies:
            counts = self._of(copy)
            counts.dead_lettered += 1
            counts.failure = counts.failure if reason is None else reason

    def add_dropped(self, copies: Iterable[Copy], reason: str) -> None:
        """Count messages that the route does not get."""
        for copy in copies:
            counts = self._of(copy)
            counts.dropped += 1
            counts.failure = reason

    def set_failure(self, copies: Sequence[Copy], reason: str) -> None:
        """Set the last failure of the routes of copies that are tried again."""
        for copy in copies:
            self._of(copy).failure = reason

    def drain(self) -> dict[int, RouteCounts]:
        """Return the counts since the last call."""
        counts, self._by_number = self._by_number, {}
        return counts

    def restore(self, earlier: Mapping[int, RouteCounts]) -> None:
        """Add counts that were drained and could not be stored."""
        for number, counts in earlier.items():
            counts.add(self._by_number.get(number, RouteCounts()))
            self._by_number[number] = counts

    def _of(self, copy: Copy) -> RouteCounts:
        return self._by_number.setdefault(copy.route.number, RouteCounts())
