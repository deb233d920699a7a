"""Cohorts of a scan's round: the revisions that share a read, and how far it goes.

    active, former    ──▶ to the end of the stream
    building          ──▶ to the positions of the active one, so that it replaces that at the same records

While a building revision is about to reach the active one, the active one gets no batch.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import starmap
from typing import Any

from spark_worker.views.inputs.marks import watermark_beside
from spark_worker.views.inputs.reads import Caps
from storage.domain import limits
from storage.domain.streams.lineage import FULLY_READ
from storage.domain.streams.start_at import StartAt
from storage.domain.views.progress import RevisionState, ViewRevision
from storage.views.scans import ScanRevision


class Cohorts:
    """Revisions of a round. `idle`: ids of those that had nothing to read in the last one."""

    def __init__(self, every: Sequence[ScanRevision], idle: Collection[str]) -> None:
        self._every = every
        self._idle = frozenset(idle)
        self._active = {
            entry.view.view_id: entry.revision
            for entry in every
            if entry.revision.state is RevisionState.ACTIVE
        }

    @property
    def count(self) -> int:
        """Return the number of revisions."""
        return len(self._every)

    def cap(self, entry: ScanRevision) -> Caps | None:
        """Return the positions that a building revision must not pass: those of the active one.

        None for other revisions, and while the active one has stopped, or reads other streams or a former one.
        """
        active = self._active.get(entry.view.view_id)
        is_building = entry.revision.state is RevisionState.BUILDING
        if active is None or not is_building or not _read_the_same(entry.revision, active):
            return None
        return _positions(active)

    def caught_up(self) -> list[ScanRevision]:
        """Return the building revisions that include what the active ones do, or all there is."""
        return [
            entry
            for entry in self._every
            if entry.revision.state is RevisionState.BUILDING and self._has_caught_up(entry)
        ]

    def _has_caught_up(self, entry: ScanRevision) -> bool:
        revision, cap = entry.revision, self.cap(entry)
        if not has_started(revision) or self.watermark_behind(entry) is not None:
            return False
        if cap is None:
            return revision.revision_id in self._idle
        return self._both_idle(entry) or all(
            starmap(_is_at, zip(_positions(revision), cap, strict=True))
        )

    def watermark_behind(self, entry: ScanRevision) -> int | None:
        """Return the watermark that a building revision has to reach, None if it has.

        It is that of the active one, up to which an outer join has rows of records without a match.
        """
        revision, active = entry.revision, self._active.get(entry.view.view_id)
        own_ms = revision.progress.watermark_ms
        if self.cap(entry) is None or active is None or not revision.plan.join_preserved:
            return None
        at_ms = watermark_beside(revision, active)
        return None if at_ms is None or own_ms is None or own_ms >= at_ms else at_ms

    def include_the_same(self, entry: ScanRevision) -> bool:
        """Return whether a revision and the active one of its view include the same records.

        The positions of two that have nothing left to read may differ by the ends of closed shards. If they differ in a shard, the
        store has lost records.
        """
        positions, caps = _positions(entry.revision), self.cap(entry)
        if caps is None or not self._both_idle(entry):
            return positions == caps
        both = [
            {own[shard], offset}
            for own, cap in zip(positions, caps, strict=True)
            for shard, offset in cap.items()
            if shard in own
        ]
        return all(len(offsets - {FULLY_READ}) <= 1 for offsets in both)

    def _both_idle(self, entry: ScanRevision) -> bool:
        active = self._active.get(entry.view.view_id)
        is_idle = entry.revision.revision_id in self._idle
        return is_idle and active is not None and active.revision_id in self._idle

    def by_read(self, is_blocked: Callable[[ScanRevision], bool]) -> list[list[ScanRevision]]:
        """Group the revisions that get a batch by what they read."""
        running = [entry for entry in self._every if not is_blocked(entry)]
        replaced = {entry.view.view_id for entry in running if self._is_near(entry)}
        cohorts: dict[Any, list[ScanRevision]] = {}
        for entry in running:
            revision, cap = entry.revision, self.cap(entry)
            if revision.state is RevisionState.ACTIVE and entry.view.view_id in replaced:
                continue
            key = (
                revision.stream_id,
                revision.revision_id if revision.query.is_join else "",
                frozenset(revision.progress.positions.items()),
                has_started(revision),
                None if cap is None else frozenset(cap[0].items()),
            )
            cohorts.setdefault(key, []).append(entry)
        return [*cohorts.values()]

    def _is_near(self, entry: ScanRevision) -> bool:
        """Return whether a building revision is at most one read behind the active one."""
        cap, is_idle = self.cap(entry), entry.revision.revision_id in self._idle
        if cap is None or is_idle or not has_started(entry.revision):
            return False
        pairs = zip(_positions(entry.revision), cap, strict=True)
        behind = [_distance(own, other) for own, other in pairs]
        return all(one is not None and one <= limits.READ_RECORDS_MAX for one in behind)


def has_started(revision: ViewRevision) -> bool:
    """Return whether a revision has its first positions, or needs none."""
    starts = {one.start for one in revision.query.inputs.values()}
    return revision.progress.batch > 0 or starts == {StartAt.EARLIEST}


def _positions(revision: ViewRevision) -> list[Mapping[int, int]]:
    return [followed.progress.positions for followed in revision.streams]


def _read_the_same(revision: ViewRevision, other: ViewRevision) -> bool:
    """Return whether two revisions read the same streams, also of those that are joined."""
    pairs = [*zip(revision.streams, other.streams, strict=False)]
    return len(revision.streams) == len(other.streams) and all(
        own.input.stream == one.input.stream and own.progress.stream_id == one.progress.stream_id
        for own, one in pairs
    )


def _is_at(positions: Mapping[int, int], others: Mapping[int, int]) -> bool:
    """Return whether a reader has passed all that another one has."""
    if positions.keys() != others.keys():
        return False
    pairs = [(positions[shard], other) for shard, other in others.items()]
    return all(own == FULLY_READ or own >= other != FULLY_READ for own, other in pairs)


def _distance(positions: Mapping[int, int], others: Mapping[int, int]) -> int | None:
    """Return by how many records a reader is behind another one; None if shards differ."""
    total = 0
    for shard, other in others.items():
        own = positions.get(shard, 0)
        if (own == FULLY_READ) is not (other == FULLY_READ):
            return None
        total += max(0, other - own)
    return None if positions.keys() - others.keys() else total
