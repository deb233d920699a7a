"""Event ids: the positions of a reader as text, from which reading continues.

4f0c9ad17be2a6f3/0:120,1:end,2:7       the next offset of each shard; 1 was read to its end
────────────────                       the stream's id, which is not its name
                 .../done              everything requested was sent: no need to reconnect
"""

import re
from collections.abc import Mapping

import msgspec

from storage.domain.errors import InvalidCursor
from storage.domain.streams.lineage import FULLY_READ

DONE = "/done"

_PLACE = re.compile(
    r"([0-9a-f]{16})/((?:[0-9]{1,9}:(?:[0-9]{1,16}|end))(?:,[0-9]{1,9}:(?:[0-9]{1,16}|end))*)(/done)?"
)


class Place(msgspec.Struct, frozen=True):
    """Positions in a stream. `is_done`: its reader has received everything that it requested."""

    stream_id: str
    positions: dict[int, int]
    is_done: bool = False


def is_place(cursor: str) -> bool:
    """Return whether a cursor is an event id."""
    return "/" in cursor


def read_place(event_id: str) -> Place:
    """Parse an event id. Raises InvalidCursor."""
    match = _PLACE.fullmatch(event_id)
    if match is None:
        raise InvalidCursor
    pairs = (pair.split(":") for pair in match[2].split(","))
    positions = {int(shard): FULLY_READ if at == "end" else int(at) for shard, at in pairs}
    return Place(match[1], positions, match[3] is not None)


def tell_place(stream_id: str, positions: Mapping[int, int]) -> str:
    """Format positions in a stream as an event id."""
    pairs = (f"{shard}:{'end' if at == FULLY_READ else at}" for shard, at in positions.items())
    return f"{stream_id}/{','.join(pairs)}"


def place_before(stream_id: str, positions: Mapping[int, int], shard: int) -> bytes:
    """Return an event id without its final offset, that of one shard.

    It is the prefix for many records of that shard, one after another.
    """
    others = {index: at for index, at in positions.items() if index != shard}
    between = "," if others else ""
    return f"{tell_place(stream_id, others)}{between}{shard}:".encode()
