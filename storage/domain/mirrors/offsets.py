"""Offset table: positions of a shard of the origin, translated to shards of its copy.

    origin   0 ─────── 1000 ─────── 2000 ─── 2412
             │          │            │        │      no record from there on is before
    copy 0   0         1830         3702     4400
    copy 1   0          170          298      310

An entry is a lower bound, so any subset of a table is right, and only less exact. Bounds of two shards of the origin hold
together: the smallest is right for a shard of the copy that has records of both (`safe_offsets`).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from storage.domain import limits


class OffsetBound(NamedTuple):
    """Lower bound of where records of a shard are.

    None with an offset of `origin_offset` or more is in `target_shard` before `target_offset`.
    """

    target_shard: int
    origin_offset: int
    target_offset: int


class OffsetChanges(NamedTuple):
    """Entries that were added to a table since it was stored, and those that were removed."""

    added: frozenset[OffsetBound]
    removed: frozenset[OffsetBound]


class OffsetTable:
    """Sparse table of one shard of the origin.

    For each shard of the copy both columns increase. An entry is kept if it is `MIRROR_OFFSET_INTERVAL` records, in
    either column, after the one before it; the newest one always is.
    """

    def __init__(self, stored: Iterable[OffsetBound] = ()) -> None:
        self._stored = frozenset(stored)
        self._entries: dict[int, list[tuple[int, int]]] = {}
        self._is_changed = False
        for shard, origin_offset, target_offset in sorted(self._stored):
            self._entries.setdefault(shard, []).append((origin_offset, target_offset))

    def __iter__(self) -> Iterator[OffsetBound]:
        return (
            OffsetBound(shard, *entry)
            for shard, entries in self._entries.items()
            for entry in entries
        )

    def observe_read(
        self, first_offset: int, tip: int, target_offsets: Mapping[int, int], *, is_added: bool
    ) -> None:
        """Add what a read from `first_offset` shows.

        `target_offsets`: the ends of the copy's shards before the read. `tip`: the end of the shard then; what the origin did not
        have yet comes later. `is_added`: every record of the read was added after it, and so by this attempt: no other attempt
        is ahead of it.
        """
        if is_added:
            self.add(first_offset, target_offsets)
        self.add(tip, target_offsets)

    def add(self, origin_offset: int, target_offsets: Mapping[int, int]) -> None:
        """Add that no record from `origin_offset` on is before these offsets of the copy."""
        for shard, target_offset in target_offsets.items():
            entries = self._entries.setdefault(shard, [])
            if not entries and target_offset == 0:
                continue  # says nothing
            first = bisect_right(entries, origin_offset, key=_origin_of)
            if first and entries[first - 1][1] >= target_offset:
                continue  # known already, from an earlier offset on
            first = bisect_left(entries, origin_offset, key=_origin_of)
            last = bisect_right(entries, target_offset, lo=first, key=_target_of)
            entries[first:last] = [(origin_offset, target_offset)]
            _thin(entries)
            self._is_changed = True

    def clear(self) -> None:
        """Drop every entry: the copy is another stream."""
        self._is_changed = self._is_changed or bool(self._entries)
        self._entries.clear()

    def retain(self, starts: Mapping[int, int]) -> None:
        """Drop what is below the starts of the copy's shards, and shards that are gone."""
        for shard, entries in list(self._entries.items()):
            if shard not in starts:
                del self._entries[shard]
                self._is_changed = True
                continue
            below = bisect_right(entries, starts[shard], key=_target_of) - 1
            if below > 0:
                del entries[:below]
                self._is_changed = True

    def floor(self, target_shard: int, origin_offset: int) -> int:
        """Return an offset of the copy before which no record from `origin_offset` on is."""
        entries = self._entries.get(target_shard, [])
        after = bisect_right(entries, origin_offset, key=_origin_of)
        return entries[after - 1][1] if after else 0

    def changes(self) -> OffsetChanges:
        """Return what differs from the stored table."""
        if not self._is_changed:
            return OffsetChanges(frozenset(), frozenset())
        entries = frozenset(self)
        return OffsetChanges(entries - self._stored, self._stored - entries)

    def mark_stored(self, changes: OffsetChanges) -> None:
        """Note that these changes were stored."""
        self._stored = (self._stored - changes.removed) | changes.added
        self._is_changed = self._stored != frozenset(self)


class ShardPosition(msgspec.Struct, frozen=True, kw_only=True):
    """A group's position in a shard of the origin, and the table of that shard.

    `position` is the next offset that it reads. The shard's records have hash keys from `first_hash_key` to `last_hash_key`.
    `is_complete`: the group has read all that the shard will ever have, and all of it is here.
    """

    first_hash_key: int
    last_hash_key: int
    position: int
    offsets: OffsetTable
    is_complete: bool = False


class TargetShard(msgspec.Struct, frozen=True):
    """A shard of the copy, and its next offset to be written."""

    index: int
    first_hash_key: int
    last_hash_key: int
    next_offset: int


def safe_offsets(
    positions: Sequence[ShardPosition], targets: Iterable[TargetShard]
) -> dict[int, int]:
    """Return for each shard of the copy an offset before which the group has read all.

    A shard of the copy has records of those shards of the origin whose hash keys it shares. One that only has records of
    complete shards is left out: their children say more.
    """
    offsets = {}
    for target in targets:
        floors = [
            one.offsets.floor(target.index, one.position)
            for one in positions
            if not one.is_complete
            and one.first_hash_key <= target.last_hash_key
            and target.first_hash_key <= one.last_hash_key
        ]
        if floors:
            offsets[target.index] = min(*floors, target.next_offset)
    return offsets


def _thin(entries: list[tuple[int, int]]) -> None:
    """Drop entries close to those before them, and every other old one of a full table."""
    least = limits.MIRROR_OFFSET_INTERVAL
    if len(entries) > 2:
        (origin, target), (next_origin, next_target) = entries[-3:-1]
        if next_origin - origin < least and next_target - target < least:
            del entries[-2]
    if len(entries) > limits.MIRROR_OFFSETS_MAX:
        half = len(entries) // 2
        entries[:half] = entries[:half:2]


def _origin_of(entry: tuple[int, int]) -> int:
    return entry[0]


def _target_of(entry: tuple[int, int]) -> int:
    return entry[1]
