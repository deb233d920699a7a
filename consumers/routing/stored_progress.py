"""Stored progress of a topic's router: positions, and counts of what lies before them."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from consumers.routing.delivery_counts import DeliveryCounts
from storage.domain.errors import StaleGeneration
from storage.domain.names import LogId
from storage.domain.topics.routing import RouteCounts, TopicPositions
from storage.topics.routing import TopicRouting


class _ProgressReport(NamedTuple):
    positions: TopicPositions
    counts: Mapping[int, RouteCounts]


class StoredProgress:
    """Progress of a router under a lease with the fencing number `fence`.

    `note_finished` is called with stored counts.
    """

    def __init__(
        self,
        routing: TopicRouting,
        stream_id: LogId,
        fence: int,
        note_finished: Callable[[RouteCounts], None],
    ) -> None:
        self._rows = routing.positions
        self._stream_id = stream_id
        self._fence = fence
        self._note_finished = note_finished
        self._saved = TopicPositions({})
        self._unconfirmed: _ProgressReport | None = None
        self.counts = DeliveryCounts()

    async def read(self) -> TopicPositions:
        """Return the positions that an earlier router has stored."""
        self._saved = await self._rows.read(self._stream_id)
        return self._saved

    def is_saved(self, positions: TopicPositions) -> bool:
        """Return whether these positions are stored, and no count is missing."""
        return positions == self._saved and self._unconfirmed is None and self.counts.is_empty

    async def save(self, positions: TopicPositions) -> None:
        """Store positions, with the counts of what lies before them, if anything has changed.

        Raises StaleGeneration once another router has the lease.
        """
        await self._confirm()
        report = _ProgressReport(positions, self.counts.drain(positions.of))
        if positions == self._saved and not report.counts:
            return
        self._unconfirmed = report
        if not await self._rows.save(self._stream_id, positions, report.counts, self._fence):
            raise StaleGeneration("Another router has the lease of this topic.")
        self._note_saved(report)

    async def _confirm(self) -> None:
        """Find out whether a report was stored whose answer was lost; count it later if not."""
        report = self._unconfirmed
        if report is None:
            return
        if await self._rows.read(self._stream_id) == report.positions:
            self._note_saved(report)
        else:
            self._unconfirmed = None
            self.counts.restore(report.counts)

    def _note_saved(self, report: _ProgressReport) -> None:
        self._unconfirmed = None
        self._saved = report.positions
        for each in report.counts.values():
            self._note_finished(each)
