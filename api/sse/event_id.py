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

_EVENT_ID = re.compile(
    r"([0-9a-f]{16})/((?:[0-9]{1,9}:(?:[0-9]{1,16}|end))(?:,[0-9]{1,9}:(?:[0-9]{1,16}|end))*)(/done)?"
)


class EventPosition(msgspec.Struct, frozen=True):
    """Positions in a stream. `is_done`: its reader has received everything that it requested."""

    stream_id: str
    positions: dict[int, int]
    is_done: bool = False


def is_event_id(cursor: str) -> bool:
    """Return whether a cursor is an event id."""
    return "/" in cursor


def parse_event_id(event_id: str) -> EventPosition:
    """Parse an event id. Raises InvalidCursor."""
    match = _EVENT_ID.fullmatch(event_id)
    if match is None:
        raise InvalidCursor
    pairs = (pair.split(":") for pair in match[2].split(","))
    positions = {int(shard): FULLY_READ if at == "end" else int(at) for shard, at in pairs}
    return EventPosition(match[1], positions, match[3] is not None)


def format_event_id(stream_id: str, positions: Mapping[int, int]) -> str:
    """Format positions in a stream as an event id."""
    pairs = (f"{shard}:{'end' if at == FULLY_READ else at}" for shard, at in positions.items())
    return f"{stream_id}/{','.join(pairs)}"


def event_id_prefix(stream_id: str, positions: Mapping[int, int], shard: int) -> bytes:
    """Return an event id without its final offset, that of one shard.

    It is the prefix for many records of that shard, one after another.
    """
    others = {index: at for index, at in positions.items() if index != shard}
    between = "," if others else ""
    return f"{format_event_id(stream_id, others)}{between}{shard}:".encode()
