"""Stored progress of a topic's router: positions, and counts of what lies before them."""

import secrets
from collections.abc import Callable, Mapping
from typing import NamedTuple

from consumers.routing.delivery_counts import DeliveryCounts
from storage.domain.errors import StaleGeneration
from storage.domain.names import LogId
from storage.domain.topics.routing import RouteCounts, TopicPositions
from storage.topics.routing import TopicRouting

_ID_BITS = 62


class _ProgressReport(NamedTuple):
    report_id: int
    positions: TopicPositions
    counts: Mapping[int, RouteCounts]


class StoredProgress:
    """Progress of a router under a lease with the fencing number `fence`.

    A report whose answer was lost may be stored at any later time, so each one replaces a certain earlier one, or fails.
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
        self.saved = TopicPositions({})
        self.counted = TopicPositions({})
        """The positions of the last report, stored or not: what lies before them is in its counts, or in those of earlier ones."""
        self._reports: frozenset[int] = frozenset()
        self._unconfirmed: _ProgressReport | None = None
        self._restored: dict[int, _ProgressReport] = {}
        self.counts = DeliveryCounts()

    async def read(self) -> TopicPositions:
        """Return the positions that an earlier router has stored."""
        self._reports = await self._rows.reports(self._stream_id)
        self.saved = self.counted = await self._rows.read(self._stream_id)
        return self.saved

    def is_saved(self, positions: TopicPositions) -> bool:
        """Return whether these positions are stored, and no count is missing."""
        return positions == self.saved and self._unconfirmed is None and self.counts.is_empty

    async def save(self, present: Callable[[], TopicPositions]) -> None:
        """Store the present positions, and the counts of what lies before them, if any changed.

        They are read when the counts are drained: with earlier ones, a child of a shard that ended meanwhile would count as
        read to its end, since neither has a position.
        Raises StaleGeneration once another router has the lease, or has stored positions after this one read them.
        """
        await self._confirm()
        positions = self.counted = present()
        counts = self.counts.drain(positions.of)
        if positions == self.saved and not counts:
            return
        report = _ProgressReport(secrets.randbits(_ID_BITS), positions, counts)
        self._unconfirmed = report
        is_stored = await self._rows.save(
            self._stream_id,
            positions,
            counts,
            fence=self._fence,
            report=report.report_id,
            expected=self._reports,
        )
        if is_stored:
            self._note_saved(report)
        else:
            await self._confirm()
            if self._restored:
                raise StaleGeneration("Another router has the lease of this topic.")

    async def _confirm(self) -> None:
        """Find out whether a report was stored whose answer was lost; count it later if not.

        Raises StaleGeneration if another router has stored one.
        """
        report = self._unconfirmed
        if report is None:
            return
        stored = await self._rows.reports(self._stream_id)
        if report.report_id in stored:
            self._note_saved(report)
            return
        self._unconfirmed = None
        self.counts.restore(report.counts)
        late = next((self._restored[one] for one in stored if one in self._restored), None)
        if late is not None:
            self.counts.subtract(late.counts)
            self._note_saved(late)
        elif stored == self._reports:
            self._restored[report.report_id] = report
        else:
            raise StaleGeneration("Another router has the lease of this topic.")

    def _note_saved(self, report: _ProgressReport) -> None:
        self._unconfirmed = None
        self._restored.clear()
        self._reports = frozenset({report.report_id})
        self.saved = report.positions
        for each in report.counts.values():
            self._note_finished(each)
