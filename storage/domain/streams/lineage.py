"""Lineage of a stream's shards, and the position of a reader of all of them.

A reader's position is a *frontier*: for each shard it is in, the next offset to read, or FULLY_READ for one
that it has read to its end while a child of it still waits for another parent. At any time the shards of a
frontier cover the ring once:

    shards      0 ──┬── 1 ─────┐              frontier    {0: 7}
                    └── 2 ──┐  ├── 4          ...         {1: 0, 2: 0}
                            ├──┘   5          ...         {1: 3, 2: FULLY_READ}
                            └── (merge 1, 2 → 4)          {4: 0}
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from storage.domain.errors import OffsetOutOfRange, ShardClosed, ShardNotFound
from storage.domain.names import LogId
from storage.domain.streams.stream import Shard, ShardRead, ShardState, Stream

T = TypeVar("T")

FULLY_READ = -1
"""Position in a shard that was closed and read to its end."""


class ShardClosedTo(ShardClosed):
    """The shard takes no more records; its children do.

    `signed_offsets`: of records with deduplication keys, those that it has (`storage.domain.streams.deduplication`).
    """

    def __init__(self, children: tuple[Shard, ...], signed_offsets: Sequence[int] = ()) -> None:
        super().__init__(children=[_describe(child) for child in children])
        self.children = children
        self.signed_offsets = signed_offsets


def _describe(shard: Shard) -> dict[str, object]:
    """Return a shard as details of an error.

    Hash keys are strings: integers in JSON are exact only up to 2^53.
    """
    return {
        "shard": shard.index,
        "first_hash_key": str(shard.first_hash_key),
        "last_hash_key": str(shard.last_hash_key),
    }


_Packed = tuple[int, LogId, str, str, int, tuple[int, ...]]
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[_Packed])


def pack_children(children: Iterable[Shard]) -> bytes:
    """Encode the children that a closed log stores; empty for none."""
    packed = [
        (
            child.index,
            child.log_id,
            str(child.first_hash_key),
            str(child.last_hash_key),
            child.opened_at_ms,
            child.parents,
        )
        for child in children
    ]
    return _encoder.encode(packed) if packed else b""


def unpack_children(packed: bytes) -> tuple[Shard, ...]:
    """Decode the children as they were when their parent was closed."""
    return tuple(
        Shard(index, log_id, int(first), int(last), opened_at_ms, None, parents)
        for index, log_id, first, last, opened_at_ms, parents in _decoder.decode(packed)
    )


def read_frontier(stream: Stream, positions: Mapping[int, int]) -> dict[int, int | None]:
    """Return the frontier of a reader at `positions`: children replace ended parents.

    None stands for the oldest record of a shard. Without positions it is the start of a reader, in the
    shards whose parents have expired or never existed. Positions in expired shards are dropped.
    """
    shards = (*stream.shards, *stream.opening)
    indexes = {shard.index for shard in shards}
    done = _passed(shards, positions)
    next_positions: dict[int, int | None] = {}
    for shard in shards:
        if shard.index in done:
            continue
        if shard.index in positions:
            next_positions[shard.index] = positions[shard.index]
            if positions[shard.index] == FULLY_READ:
                done.add(shard.index)
        elif all(index in done or index not in indexes for index in shard.parents):
            next_positions[shard.index] = 0 if positions else None
    waited_for = _waited_for(shards, next_positions)
    return {
        index: position
        for index, position in next_positions.items()
        if position != FULLY_READ or index in waited_for
    }


def _passed(shards: Sequence[Shard], positions: Mapping[int, int]) -> set[int]:
    """Return the ancestors of the shards that have a position: they were read to their ends."""
    passed: set[int] = set()
    for shard in reversed(shards):
        if shard.index in positions or shard.index in passed:
            passed.update(shard.parents)
    return passed


def have_passed(stream: Stream, positions: Mapping[int, int], ends: Mapping[int, int]) -> bool:
    """Return whether a reader at `positions` has read each of these shards up to an offset.

    A shard without a position was read to its end if a descendant of it has one, or is no longer part of the stream. It was not
    read, not even if it is empty, if an ancestor of it has a position, or it is younger than the stream's definition.
    """
    shards = (*stream.shards, *stream.opening)
    indexes, done = {shard.index for shard in shards}, _passed(shards, positions)
    return all(
        shard in done
        or (shard not in indexes and shard < max(indexes))
        or positions.get(shard) == FULLY_READ
        or (shard in positions and positions[shard] >= end)
        for shard, end in ends.items()
    )


def falls_behind(positions: Mapping[int, int], earlier: Mapping[int, int]) -> bool:
    """Return whether a position lies before the earlier one in the same shard."""
    return any(
        shard in earlier and _progress(position) < _progress(earlier[shard])
        for shard, position in positions.items()
    )


def furthest(positions: Mapping[int, int], earlier: Mapping[int, int]) -> dict[int, int]:
    """Return the positions, or the earlier ones in shards where these are further."""
    return {
        shard: max(position, earlier.get(shard, position), key=_progress)
        for shard, position in positions.items()
    }


def nearest(positions: Mapping[int, int], others: Mapping[int, int]) -> dict[int, int]:
    """Return the positions, or the others in their shards where these are not as far."""
    earlier = {
        shard: min(positions[shard], position, key=_progress) for shard, position in others.items()
    }
    return {**positions, **earlier}


def _progress(position: int) -> tuple[bool, int]:
    return position == FULLY_READ, position


def _waited_for(shards: Sequence[Shard], next_positions: Mapping[int, int | None]) -> set[int]:
    """Return the shards whose end must be recorded.

    A child of theirs has not been started, or none is known yet.
    """
    with_children = {parent for shard in shards for parent in shard.parents}
    still = {
        parent for shard in shards if shard.index not in next_positions for parent in shard.parents
    }
    return still | (next_positions.keys() - with_children)


def eldest(groups: Mapping[Shard, T]) -> dict[Shard, T]:
    """Select the shards to which no other shard may still forward records.

    No shard with a lower number shares hash keys with them. So a shard gets all its records of a call
    together, whichever redirects led there.
    """
    younger: set[int] = set()
    beside: list[Shard] = []
    for shard in sorted(groups, key=lambda shard: shard.first_hash_key):
        beside = [other for other in beside if other.last_hash_key >= shard.first_hash_key]
        younger.update(max(shard.index, other.index) for other in beside)
        beside.append(shard)
    return {shard: some for shard, some in groups.items() if shard.index not in younger}


def expired_positions(stream: Stream, positions: Mapping[int, int]) -> dict[int, int]:
    """Return the positions in shards that expired before they were read to their ends."""
    indexes = {shard.index for shard in (*stream.shards, *stream.opening)}
    return {
        index: position
        for index, position in positions.items()
        if index not in indexes and position != FULLY_READ
    }


def needs_refresh(stream: Stream, positions: Mapping[int, int]) -> bool:
    """Return whether the positions refer to a shard newer than this definition."""
    newest = max(shard.index for shard in (*stream.shards, *stream.opening))
    return any(index > newest for index in positions)


def check_positions(positions: Mapping[int, int], states: Sequence[ShardState]) -> None:
    """Raise ShardNotFound for a shard that never existed, OffsetOutOfRange beyond an end."""
    newest = max(state.shard.index for state in states)
    for index in positions:
        if index > newest:
            raise ShardNotFound(f"The stream has no shard {index}.")
    for state in states:
        if positions.get(state.shard.index, 0) > state.next:
            detail = f"The next offset of shard {state.shard.index} is {state.next}."
            raise OffsetOutOfRange(detail, next_offset=state.next)


def positions_after(before: Mapping[int, int | None], reads: Iterable[ShardRead]) -> dict[int, int]:
    """Return the positions of a reader that stood at the frontier `before`, after these reads."""
    stood = {index: position for index, position in before.items() if position is not None}
    return {
        **stood,
        **{read.shard: FULLY_READ if read.ended else read.next_offset for read in reads},
    }
