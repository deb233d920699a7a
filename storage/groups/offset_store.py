"""Verbs of a group's committed offsets in the hot store.

    a rebalance   row locked ──▶ freeze ──▶ leases and exact offsets written ──▶ committed ──▶ seed
    a commit      accepted if the seeded leases allow it ──▶ copied to the row within a second

docs/adr/0085 has the reasons why an entry that is left behind by a crash, a fail-over or a restored store is not believed.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from storage.domain.clock import ScriptTime
from storage.domain.errors import MillstreamError
from storage.domain.groups.committed_offsets import CommittedShard, GroupOffsets, OffsetEntry
from storage.domain.groups.group import Commit, Group


class OffsetStore(Protocol):
    """Committed offsets of groups.

    Every method raises StorageUnavailable or StorageBusy; those that write also OutcomeUnknown.
    """

    async def commit(
        self, group: Group, commits: Sequence[Commit], now: ScriptTime
    ) -> list[CommittedShard | None]:
        """Commit offsets, each shard once; None where Postgres must decide."""
        ...

    async def freeze(self, group: Group, fence: str) -> GroupOffsets:
        """Accept no commits until the group is seeded by the same fence; return its offsets.

        The caller holds the lock on the group's row, and seeds only after its transaction was committed. `fence`: a random
        text.
        """
        ...

    async def seed(self, group: Group, fence: str, entries: Mapping[int, OffsetEntry]) -> bool:
        """Replace the offsets and accept commits, unless another one has frozen the group since."""
        ...

    async def read(self, group: Group) -> GroupOffsets:
        """Return the group's offsets."""
        ...

    async def read_many(self, groups: Sequence[Group]) -> list[GroupOffsets | MillstreamError]:
        """Return the offsets of each group, or the error."""
        ...
