"""Event ids: the positions of a reader as text, from which reading continues.

4f0c9ad17be2a6f3~0:120,1:end,2:7~1c291ca3       the next offset of each shard; 1 was read to its end
────────────────                 ────────       the stream's id, which is not its name; the checksum
                         ~done~5d2f0e61         everything requested was sent: no need to reconnect

The checksum detects an id that was cut or changed on its way: the rest of it may look like an earlier position.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from zlib import crc32

import msgspec

from storage.domain.errors import InvalidCursor
from storage.domain.streams.lineage import FULLY_READ

_DONE = "~done"
_SEPARATORS = "~/"

_EVENT_ID = re.compile(
    r"([0-9a-f]{16})~((?:[0-9]{1,9}:(?:[0-9]{1,16}|end))(?:,[0-9]{1,9}:(?:[0-9]{1,16}|end))*)(~done)?"
)


class EventPosition(msgspec.Struct, frozen=True):
    """Positions in a stream. `is_done`: its reader has received everything that it requested."""

    stream_id: str
    positions: dict[int, int]
    is_done: bool = False


def is_event_id(cursor: str) -> bool:
    """Return whether a cursor is an event id."""
    return any(separator in cursor for separator in _SEPARATORS)


def parse_event_id(event_id: str) -> EventPosition:
    """Parse an event id. Raises InvalidCursor."""
    match = _EVENT_ID.fullmatch(_without_checksum(event_id))
    if match is None:
        raise InvalidCursor
    pairs = (pair.split(":") for pair in match[2].split(","))
    positions = {int(shard): FULLY_READ if at == "end" else int(at) for shard, at in pairs}
    return EventPosition(match[1], positions, match[3] is not None)


def _without_checksum(event_id: str) -> str:
    if "/" in event_id:  # ids before the checksum; ADR 0053: for one release
        return event_id.replace("/", "~")
    position, _, checksum = event_id.rpartition("~")
    if not position.isascii() or checksum != _checksum(position):
        raise InvalidCursor
    return position


def _checksum(position: str) -> str:
    return f"{crc32(position.encode()):08x}"


def format_event_id(stream_id: str, positions: Mapping[int, int], *, done: bool = False) -> str:
    """Format positions in a stream as an event id."""
    position = _format_position(stream_id, positions) + (_DONE if done else "")
    return f"{position}~{_checksum(position)}"


def _format_position(stream_id: str, positions: Mapping[int, int]) -> str:
    pairs = (f"{shard}:{'end' if at == FULLY_READ else at}" for shard, at in positions.items())
    return f"{stream_id}~{','.join(pairs)}"


def event_ids(
    stream_id: str, positions: Mapping[int, int], shard: int, offsets: Iterable[int]
) -> Iterator[bytes]:
    """Yield the event ids of a reader that moves to each of these offsets of one shard."""
    others = {index: at for index, at in positions.items() if index != shard}
    between = "," if others else ""
    prefix = f"{_format_position(stream_id, others)}{between}{shard}:".encode()
    checked = crc32(prefix)
    for offset in offsets:
        digits = b"%d" % offset
        yield b"%b%b~%08x" % (prefix, digits, crc32(digits, checked))
