"""Reasons of gaps: a read sees that offsets have no record, Postgres knows why."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from storage.concurrency.bounded_cache import BoundedCache
from storage.concurrency.single_flight import SingleFlight
from storage.domain import limits
from storage.domain.errors import StorageBusy, StorageUnavailable
from storage.domain.names import LogId
from storage.domain.streams.stream import Gap, GapReason
from storage.postgres.repositories.offset_reservations import Hole, Reservations


class GapReasons:
    """Resolver of the reason of gaps without records, which caches it.

    A reason does not change: a later loss changes the end of the gap too.
    """

    def __init__(self, rows: Reservations) -> None:
        self._rows = rows
        self._reads = SingleFlight[LogId, Sequence[Hole]]()
        self._cached: BoundedCache[tuple[LogId, Gap], Gap] = BoundedCache(
            limits.GAP_REASONS_CACHED_MAX
        )

    async def close(self) -> None:
        """Wait for the reads in progress."""
        await self._reads.finish()

    async def resolve(self, log_id: LogId, gap: Gap | None) -> Gap | None:
        """Return the gap with the reason `failover` if all of it was left by fail-overs.

        While Postgres is away it stays a hole, which says less.
        """
        if gap is None or gap.reason is not GapReason.HOLE:
            return gap
        cached = self._cached.get((log_id, gap))
        if cached is not None:
            return cached
        try:
            holes = await self._reads.run_fresh(log_id, lambda: self._rows.holes(log_id))
        except (StorageUnavailable, StorageBusy):
            return gap
        resolved = msgspec.structs.replace(gap, reason=_reason(gap, holes))
        self._cached[log_id, gap] = resolved
        return resolved


def _reason(gap: Gap, holes: Sequence[Hole]) -> GapReason:
    """Return `failover` if holes of fail-overs cover the gap."""
    touched = [hole for hole in holes if hole.first < gap.next and hole.next > gap.first]
    is_covered = (
        bool(touched)
        and touched[0].first <= gap.first
        and touched[-1].next >= gap.next
        and all(one.next == other.first for one, other in pairwise(touched))
    )
    is_fail_over = all(hole.reason is GapReason.FAILOVER for hole in touched)
    return GapReason.FAILOVER if is_covered and is_fail_over else GapReason.HOLE
