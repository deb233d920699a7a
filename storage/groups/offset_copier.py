"""Write-behind copier of committed offsets, from the hot store to the groups' rows.

Readers of the rows (retention, metrics, backups) see a commit about a second late. A copy moves only a row whose lease is
the one that the commit was accepted under, and only forward, so a late one is harmless.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Never

from storage.concurrency.periodic import periodic
from storage.domain import limits
from storage.domain.errors import MillstreamError
from storage.domain.groups.committed_offsets import GroupOffsets, OffsetEntry
from storage.domain.groups.group import Group
from storage.groups.offset_store import OffsetStore
from storage.postgres.repositories.group_mapping import GroupShard, OffsetCopy
from storage.postgres.repositories.groups import GroupRows

logger = logging.getLogger(__name__)

_COPY_SECONDS = limits.GROUP_OFFSETS_COPY_MS / limits.SECOND_MS


class OffsetCopier:
    """Copier of the offsets of this process, and of those that ended processes left."""

    def __init__(self, rows: GroupRows, hot: OffsetStore) -> None:
        self._rows = rows
        self._hot = hot
        self._pending: dict[tuple[str, int], OffsetCopy] = {}

    async def run(self) -> Never:
        """Copy what was committed, once a second."""
        await periodic(_COPY_SECONDS, self._copy_pending, "copy-group-offsets")

    async def close(self) -> None:
        """Copy what is left, if that is possible."""
        with suppress(MillstreamError):
            await self._copy_pending()

    def add(self, copy: OffsetCopy) -> None:
        """Copy an offset soon; one that does not fit is left to `copy_every_group`."""
        key = (copy.group_id, copy.shard)
        earlier = self._pending.get(key)
        if earlier is not None:
            self._pending[key] = max(earlier, copy, key=_order)
        elif len(self._pending) < limits.GROUP_OFFSETS_PENDING_MAX:
            self._pending[key] = copy

    async def copy_end(self, copy: OffsetCopy) -> None:
        """Copy the end of a closed shard at once: others may be read then. If that fails, soon."""
        try:
            await self._rows.copy_offsets([copy])
        except MillstreamError:
            self.add(copy)

    async def _copy_pending(self) -> None:
        """Copy what was committed until now; what fails stays for the next time."""
        pending = list(self._pending.items())
        for first in range(0, len(pending), limits.PAGE_ITEMS_MAX):
            copies = pending[first : first + limits.PAGE_ITEMS_MAX]
            await self._rows.copy_offsets([copy for _, copy in copies])
            for key, copy in copies:
                if self._pending.get(key) is copy:
                    del self._pending[key]

    async def copy_every_group(self) -> int:
        """Copy the offsets of all groups; return the number of groups.

        Raises the last error of a group that could not be read, once the others are copied.
        """
        groups = [group async for group in self._rows.every()]
        failure: MillstreamError | None = None
        for first in range(0, len(groups), limits.PAGE_ITEMS_MAX):
            page = groups[first : first + limits.PAGE_ITEMS_MAX]
            failure = await self._copy_groups(page) or failure
        if failure is not None:
            raise failure
        return len(groups)

    async def _copy_groups(self, groups: Sequence[Group]) -> MillstreamError | None:
        """Copy what the rows lack; return the error of a group that could not be read."""
        copies, failure = list[OffsetCopy](), None
        for group, offsets in zip(groups, await self._hot.read_many(groups), strict=True):
            if isinstance(offsets, MillstreamError):
                failure = offsets
            else:
                copies += copies_of(group, offsets)
        if copies:
            await self._rows.copy_offsets(copies)
        return failure


def copies_of(group: Group, offsets: GroupOffsets) -> list[OffsetCopy]:
    """Return the group's entries that its rows may not have."""
    return [
        _copy_of(group, shard, entry)
        for shard, entry in offsets.shards.items()
        if entry.committed_at_ms is not None
    ]


def later_copies(
    group: Group, offsets: GroupOffsets, shards: Mapping[int, GroupShard]
) -> list[OffsetCopy]:
    """Return the group's entries that are beyond its rows, and of the same leases."""
    later = {
        shard: offsets.later(shard, row.lease.generation, row.committed)
        for shard, row in shards.items()
    }
    return [
        _copy_of(group, shard, entry)
        for shard, entry in later.items()
        if entry is not None and entry.committed != shards[shard].committed
    ]


def _copy_of(group: Group, shard: int, entry: OffsetEntry) -> OffsetCopy:
    return OffsetCopy(
        group_id=group.group_id,
        shard=shard,
        lease_generation=entry.lease_generation,
        offset=entry.committed or 0,
        committed_at_ms=entry.committed_at_ms or 0,
    )


def _order(copy: OffsetCopy) -> tuple[int, int, bool]:
    return copy.lease_generation, copy.offset, copy.ends
