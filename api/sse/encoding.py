"""Encodings of events: server-sent events (`text/event-stream`) and JSON Lines.

    Server-sent events                           JSON Lines
    id: <position after it>                      {"shard":0,"offset":119,…}
    data: {"shard":0,"offset":119,…}

    event: gap                                   {"type":"gap","shard":0,"first":120,"next":130,…}
    id: …
    data: {"shard":0,"first":120,…}

    : still here                                 {"type":"heartbeat","next_cursor":…}

An event's id is the position after it, so that a reader who reconnects with the last one misses nothing and receives
nothing twice. Every record has one.
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
    """Offsets [first, next) of a shard that cannot be read.

    `reason`: 'expired' by retention, or a 'hole' that was never filled.
    """

    shard: int
    first: int
    next: int
    reason: str


class EndedTold(msgspec.Struct, frozen=True):
    """A shard was split or merged, and all of it was sent; its children follow."""

    shard: int
    children: list[int]


class FailureTold(msgspec.Struct, frozen=True):
    """The stream cannot continue: a problem, as in any response."""

    problem: msgspec.Raw
    next_cursor: str


class EndTold(msgspec.Struct, frozen=True):
    """The end of the answer: everything up to here was sent.

    `reason`: the 'limit', the 'tip' at the time of the request, the 'shard_end', or 'draining' when the server shuts down.
    """

    reason: str
    next_cursor: str


class HeartbeatTold(msgspec.Struct, frozen=True):
    """Nothing new, with the current reading position."""

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
    """Encoder of one of the two formats."""

    kind: str

    def opening(self) -> bytes:
        """Return the beginning of the answer."""

    def records(
        self, chunk: Chunk, positions: dict[int, int], chosen: Sequence[int] | None
    ) -> bytes:
        """Encode the records of a chunk, or the selected ones, for a reader at these positions."""

    def told(self, what: Told, positions: dict[int, int], *, done: bool = False) -> bytes:
        """Encode another event, after which the reader is at these positions.

        `done`: the reader has received everything that it requested.
        """

    def still_here(self, what: HeartbeatTold, positions: dict[int, int], *, moved: bool) -> bytes:
        """Encode a heartbeat. `moved`: the reader's position has changed since it was last sent."""


class EventText:
    """Server-sent events."""

    kind = EVENT_STREAM

    def __init__(self, stream_id: str) -> None:
        self._stream_id = stream_id

    def opening(self) -> bytes:
        """Return the reconnection delay after a lost connection."""
        return b"retry: %d\n\n" % _RETRY_MS

    def records(
        self, chunk: Chunk, positions: dict[int, int], chosen: Sequence[int] | None
    ) -> bytes:
        if not len(chunk):
            return b""
        first = chunk.next_offset - len(chunk)
        numbers = range(len(chunk)) if chosen is None else chosen
        place = place_before(self._stream_id, positions, chunk.shard)
        return b"".join(
            [
                b"id: %b%d\ndata: %b\n\n" % (place, first + number + 1, line)
                for number, line in zip(numbers, chunk.encoded(JSON_OF_SHARD, chosen), strict=True)
            ]
        )

    def told(self, what: Told, positions: dict[int, int], *, done: bool = False) -> bytes:
        place = tell_place(self._stream_id, positions) + (DONE if done else "")
        return b"event: %b\nid: %b\ndata: %b\n\n" % (
            _NAMES[type(what)],
            place.encode(),
            _encode(what),
        )

    def still_here(self, what: HeartbeatTold, positions: dict[int, int], *, moved: bool) -> bytes:
        """Encode a comment, unless the position has changed."""
        return self.told(what, positions) if moved else b": still here\n\n"


class LineText:
    """JSON Lines."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def opening(self) -> bytes:
        """Return nothing."""
        return b""

    def records(
        self, chunk: Chunk, positions: dict[int, int], chosen: Sequence[int] | None
    ) -> bytes:
        lines = chunk.joined(JSON_OF_SHARD, chosen)
        return lines + b"\n" if lines else b""

    def told(self, what: Told, positions: dict[int, int], *, done: bool = False) -> bytes:
        members: dict[str, Any] = {
            "type": _NAMES[type(what)].decode(),
            **msgspec.structs.asdict(what),
        }
        return _encode(members) + b"\n"

    def still_here(self, what: HeartbeatTold, positions: dict[int, int], *, moved: bool) -> bytes:
        return self.told(what, positions)


def text_for(accept: bytes, stream_id: str) -> Text:
    """Return the encoder for an `Accept` header: JSON Lines if it names them, else SSE."""
    if b"jsonl" in accept:
        return LineText(JSON_LINES)
    if b"ndjson" in accept:
        return LineText(NDJSON)
    return EventText(stream_id)


def gap_told(shard: int, gap: Gap) -> GapTold:
    """Convert a gap to its event."""
    return GapTold(shard, gap.first, gap.next, gap.reason)
