"""Committed offsets of a group in the hot store, which are newer than those of its rows."""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from storage.domain.groups.assignment import MemberId
from storage.domain.groups.group import MemberShard


class OffsetEntry(msgspec.Struct, frozen=True, gc=False):
    """A shard's lease as of the last seed, and the group's offset in it."""

    lease_generation: int
    owner: MemberId | None
    committed: int | None
    committed_at_ms: int | None


class GroupOffsets(msgspec.Struct, frozen=True):
    """A group's entries in the hot store, by shard.

    `generation`: the group's as of the last seed; None if Postgres must decide about commits, because the group is
    frozen, was not seeded in this epoch of the store, or its entries were lost.
    """

    generation: int | None
    shards: Mapping[int, OffsetEntry]

    def is_after(self, generation: int) -> bool:
        """Return whether the entries are of a later rebalance, also if they are frozen again."""
        leases = (entry.lease_generation for entry in self.shards.values())
        return max((self.generation or 0, *leases)) > generation

    def later(self, shard: int, lease_generation: int, committed: int | None) -> OffsetEntry | None:
        """Return a shard's entry if it is of the lease in its row, and not below its offset.

        An entry of another lease was left behind: by a reset, a rebalance, or a store that was restored.
        """
        entry = self.shards.get(shard)
        if entry is None or entry.committed is None or entry.lease_generation != lease_generation:
            return None
        return entry if committed is None or entry.committed >= committed else None

    def latest(self, places: Iterable[MemberShard]) -> tuple[MemberShard, ...]:
        """Return shards of a member with the offsets committed last."""
        return tuple(map(self._latest, places))

    def _latest(self, place: MemberShard) -> MemberShard:
        entry = self.later(place.shard, place.generation, place.committed)
        return place if entry is None else replace(place, committed=entry.committed)


NO_OFFSETS = GroupOffsets(None, {})


class CommittedShard(msgspec.Struct, frozen=True, gc=False):
    """A commit that the hot store has accepted, under a lease of this generation."""

    lease_generation: int
    offset: int
    committed_at_ms: int
