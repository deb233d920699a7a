"""Cohorts of a scan's round: the revisions that share a read, and how far it goes.

    active, former    ──▶ to the end of the stream
    building          ──▶ to the positions of the active one, so that it replaces that at the same records

While a building revision is about to reach the active one, the active one gets no batch.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from storage.domain import limits
from storage.domain.streams.lineage import FULLY_READ, have_passed
from storage.domain.streams.start_at import StartAt
from storage.domain.streams.stream import Gap, ShardRead, Stream, StreamRead
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

    def cap(self, entry: ScanRevision) -> Mapping[int, int] | None:
        """Return the positions that a building revision must not pass: those of the active one.

        None for other revisions, and while the active one has stopped or reads a former stream.
        """
        active = self._active.get(entry.view.view_id)
        is_building = entry.revision.state is RevisionState.BUILDING
        if active is None or not is_building or active.stream_id != entry.revision.stream_id:
            return None
        return active.progress.positions

    def caught_up(self) -> list[ScanRevision]:
        """Return the building revisions that include what the active ones do, or all there is."""
        return [
            entry
            for entry in self._every
            if entry.revision.state is RevisionState.BUILDING and self._has_caught_up(entry)
        ]

    def _has_caught_up(self, entry: ScanRevision) -> bool:
        revision, cap = entry.revision, self.cap(entry)
        if not has_started(revision):
            return False
        if cap is None:
            return revision.revision_id in self._idle
        return self._both_idle(entry) or _is_at(revision.progress.positions, cap)

    def include_the_same(self, entry: ScanRevision) -> bool:
        """Return whether a revision and the active one of its view include the same records.

        The positions of two that have nothing left to read may differ by the ends of closed shards. If they differ in a shard, the
        store has lost records.
        """
        own, cap = entry.revision.progress.positions, self.cap(entry)
        if cap is None or not self._both_idle(entry):
            return own == cap
        both = [{own[shard], offset} for shard, offset in cap.items() if shard in own]
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
                frozenset(revision.progress.positions.items()),
                has_started(revision),
                None if cap is None else frozenset(cap.items()),
            )
            cohorts.setdefault(key, []).append(entry)
        return [*cohorts.values()]

    def _is_near(self, entry: ScanRevision) -> bool:
        """Return whether a building revision is at most one read behind the active one."""
        cap, is_idle = self.cap(entry), entry.revision.revision_id in self._idle
        if cap is None or is_idle or not has_started(entry.revision):
            return False
        behind = _distance(entry.revision.progress.positions, cap)
        return behind is not None and behind <= limits.READ_RECORDS_MAX


def has_started(revision: ViewRevision) -> bool:
    """Return whether a revision has its first positions, or needs none."""
    return revision.progress.batch > 0 or revision.query.input.start is StartAt.EARLIEST


def _is_at(positions: Mapping[int, int], others: Mapping[int, int]) -> bool:
    """Return whether a reader has passed all that another one has."""
    if positions.keys() != others.keys():
        return False
    pairs = [(positions[shard], other) for shard, other in others.items()]
    return all(own == FULLY_READ or own >= other != FULLY_READ for own, other in pairs)


def capped(
    read: StreamRead, before: Mapping[int, int], caps: Mapping[int, int], stream: Stream
) -> StreamRead:
    """Return the part of a read that another reader, whose positions are `caps`, has passed.

    `before`: the positions of the read. A shard that the other reader has not reached stays where it was, and one that it reads is cut at
    its position.
    """
    positions, shards = dict(read.positions), list[ShardRead]()
    for shard in read.shards:
        index, cap = shard.shard, caps.get(shard.shard)
        if cap is None and not have_passed(stream, caps, {index: 0}):
            positions[index] = before.get(index, 0)
        elif cap is None or cap == FULLY_READ:
            shards.append(shard)
        else:
            shards.append(_cut(shard, max(cap, before.get(index, 0))))
            positions[index] = shards[-1].next_offset
    return StreamRead(shards, positions if shards else dict(before), read.stream_id)


def _cut(shard: ShardRead, end: int) -> ShardRead:
    """Return the part of a read before an offset; the shard goes on there."""
    gap = shard.gap
    if gap is not None:
        gap = Gap(gap.first, min(gap.next, end), gap.reason) if gap.first < end else None
    return replace(
        shard,
        records=[each for each in shard.records if each.offset < end],
        next_offset=min(shard.next_offset, end),
        gap=gap,
        ended=False,
        children=(),
    )


def _distance(positions: Mapping[int, int], others: Mapping[int, int]) -> int | None:
    """Return by how many records a reader is behind another one; None if shards differ."""
    total = 0
    for shard, other in others.items():
        own = positions.get(shard, 0)
        if (own == FULLY_READ) is not (other == FULLY_READ):
            return None
        total += max(0, other - own)
    return None if positions.keys() - others.keys() else total
