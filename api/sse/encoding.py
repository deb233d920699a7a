"""How events are written: as server-sent events (`text/event-stream`), or as lines of JSON.

    Server-sent events                           JSON Lines
    id: <place behind it>                        {"shard":0,"offset":119,…}
    data: {"shard":0,"offset":119,…}

    event: gap                                   {"type":"gap","shard":0,"first":120,"next":130,…}
    id: …
    data: {"shard":0,"first":120,…}

    : still here                                 {"type":"heartbeat","next_cursor":…}

An event's id is the place behind it, so that a reader who comes back with the last one misses nothing and gets nothing
twice. Every record has one.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from api.http.codecs import NDJSON
from api.native.record_formats import JSON_OF_SHARD
from api.sse.event_id import DONE, place_before, tell_place
from consumers.feeds.blocks import Chunk
from storage.domain.streams.stream import Gap

EVENT_STREAM = "text/event-stream"
JSON_LINES = "application/jsonl"

_RETRY_MS = 2_000
_encode = msgspec.json.Encoder().encode


class GapTold(msgspec.Struct, frozen=True):
    """Offsets [first, next) of a shard that cannot be read: 'expired' by retention, or a 'hole' never filled."""

    shard: int
    first: int
    next: int
    reason: str


class EndedTold(msgspec.Struct, frozen=True):
    """A shard was split or merged, and all of it was told; its children follow."""

    shard: int
    children: list[int]


class FailureTold(msgspec.Struct, frozen=True):
    """It cannot go on: a problem, as any call has it."""

    problem: msgspec.Raw
    next_cursor: str


class EndTold(msgspec.Struct, frozen=True):
    """Everything was told up to here: to the 'limit', to the 'tip' as it was, to the 'shard_end', or until the server
    was asked to end, 'draining'."""

    reason: str
    next_cursor: str


class HeartbeatTold(msgspec.Struct, frozen=True):
    """Nothing new; reading has got so far."""

    next_cursor: str


Told = GapTold | EndedTold | FailureTold | EndTold | HeartbeatTold

_NAMES: dict[type[Told], bytes] = {
    GapTold: b"gap",
    EndedTold: b"shard_ended",
    FailureTold: b"error",
    EndTold: b"end",
    HeartbeatTold: b"heartbeat",
}


class Text(Protocol):
    """One of the two ways to write."""

    kind: str

    def opening(self) -> bytes:
        """What comes first."""

    def records(
        self, chunk: Chunk, positions: dict[int, int], chosen: Sequence[int] | None
    ) -> bytes:
        """The records of a chunk, or the chosen ones of them, for a reader that stood at these positions."""

    def told(self, what: Told, positions: dict[int, int], *, done: bool = False) -> bytes:
        """Something else, by which a reader stands there; `done`: it got all that it asked for."""

    def still_here(self, what: HeartbeatTold, positions: dict[int, int], *, moved: bool) -> bytes:
        """A heartbeat. `moved`: the reader's place is another one than was told last."""


class EventText:
    """Server-sent events."""

    kind = EVENT_STREAM

    def __init__(self, stream_id: str) -> None:
        self._stream_id = stream_id

    def opening(self) -> bytes:
        """As Text: how soon to come back after the connection was lost."""
        return b"retry: %d\n\n" % _RETRY_MS

    def records(
        self, chunk: Chunk, positions: dict[int, int], chosen: Sequence[int] | None
    ) -> bytes:
        """As Text."""
        if not len(chunk):
            return b""
        first = chunk.next_offset - len(chunk)
        numbers = range(len(chunk)) if chosen is None else chosen
        place = place_before(self._stream_id, positions, chunk.shard)
        return b"".join(
            [
                b"id: %b%d\ndata: %b\n\n" % (place, first + number + 1, told)
                for number, told in zip(numbers, chunk.encoded(JSON_OF_SHARD, chosen), strict=True)
            ]
        )

    def told(self, what: Told, positions: dict[int, int], *, done: bool = False) -> bytes:
        """As Text."""
        place = tell_place(self._stream_id, positions) + (DONE if done else "")
        return b"event: %b\nid: %b\ndata: %b\n\n" % (
            _NAMES[type(what)],
            place.encode(),
            _encode(what),
        )

    def still_here(self, what: HeartbeatTold, positions: dict[int, int], *, moved: bool) -> bytes:
        """As Text: a comment, unless there is something to say."""
        return self.told(what, positions) if moved else b": still here\n\n"


class LineText:
    """JSON Lines."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def opening(self) -> bytes:
        """As Text: nothing."""
        return b""

    def records(
        self, chunk: Chunk, positions: dict[int, int], chosen: Sequence[int] | None
    ) -> bytes:
        """As Text."""
        lines = chunk.joined(JSON_OF_SHARD, chosen)
        return lines + b"\n" if lines else b""

    def told(self, what: Told, positions: dict[int, int], *, done: bool = False) -> bytes:
        """As Text."""
        members: dict[str, Any] = {
            "type": _NAMES[type(what)].decode(),
            **msgspec.structs.asdict(what),
        }
        return _encode(members) + b"\n"

    def still_here(self, what: HeartbeatTold, positions: dict[int, int], *, moved: bool) -> bytes:
        """As Text."""
        return self.told(what, positions)


def text_for(accept: bytes, stream_id: str) -> Text:
    """Lines of JSON where `Accept` names them, else server-sent events."""
    if b"jsonl" in accept:
        return LineText(JSON_LINES)
    if b"ndjson" in accept:
        return LineText(NDJSON)
    return EventText(stream_id)


def gap_told(shard: int, gap: Gap) -> GapTold:
    """A gap, as it is written."""
    return GapTold(shard, gap.first, gap.next, gap.reason)
