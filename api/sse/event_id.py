"""Where a reader of events stands, in one word: the `id` of an event, from which reading goes on.

4f0c9ad17be2a6f3/0:120,1:end,2:7       the next offset of each shard; 1 was read to its end
────────────────                       the stream, whatever has its name
                 .../done              all that was asked for was told: there is nothing to come back for
"""

import re
from collections.abc import Mapping

import msgspec

from storage.domain.errors import InvalidCursor
from storage.domain.streams.lineage import ENDED

DONE = "/done"

_PLACE = re.compile(
    r"([0-9a-f]{16})/((?:[0-9]{1,9}:(?:[0-9]{1,16}|end))(?:,[0-9]{1,9}:(?:[0-9]{1,16}|end))*)(/done)?"
)


class Place(msgspec.Struct, frozen=True):
    """Positions in a stream. `is_done`: its reader was told all that it had asked for."""

    stream_id: str
    positions: dict[int, int]
    is_done: bool = False


def is_place(word: str) -> bool:
    """Whether a cursor is of this kind."""
    return "/" in word


def read_place(word: str) -> Place:
    """The place that a word names. Raises InvalidCursor."""
    found = _PLACE.fullmatch(word)
    if found is None:
        raise InvalidCursor
    pairs = (pair.split(":") for pair in found[2].split(","))
    positions = {int(shard): ENDED if at == "end" else int(at) for shard, at in pairs}
    return Place(found[1], positions, found[3] is not None)


def tell_place(stream_id: str, positions: Mapping[int, int]) -> str:
    """The word for positions in a stream."""
    told = (f"{shard}:{'end' if at == ENDED else at}" for shard, at in positions.items())
    return f"{stream_id}/{','.join(told)}"


def place_before(stream_id: str, positions: Mapping[int, int], shard: int) -> bytes:
    """All of the word but the offset in one shard, which ends it: for many records one after another."""
    others = {index: at for index, at in positions.items() if index != shard}
    between = "," if others else ""
    return f"{tell_place(stream_id, others)}{between}{shard}:".encode()
