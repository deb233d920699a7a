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
from api.sse.event_id import event_ids, format_event_id
from consumers.feeds.blocks import Chunk
from storage.domain.streams.stream import Gap

EVENT_STREAM = "text/event-stream"
JSON_LINES = "application/jsonl"

_RETRY_MS = 2_000
_encode = msgspec.json.Encoder().encode


class GapNotice(msgspec.Struct, frozen=True):
    """Offsets [first, next) of a shard that cannot be read.

    `reason`: 'expired' by retention; 'failover', without a record that was acknowledged; or a 'hole', whose records, if there
    were any, are lost.
    """

    shard: int
    first: int
    next: int
    reason: str


class EndedNotice(msgspec.Struct, frozen=True):
    """A shard was split or merged, and all of it was sent; its children follow."""

    shard: int
    children: list[int]


class FailureNotice(msgspec.Struct, frozen=True):
    """The stream cannot continue: a problem, as in any response."""

    problem: msgspec.Raw
    next_cursor: str


class EndNotice(msgspec.Struct, frozen=True):
    """The end of the answer: everything up to here was sent.

    `reason`: the 'limit', the 'tip' at the time of the request, the 'shard_end', or 'draining' when the server shuts down.
    """

    reason: str
    next_cursor: str


class HeartbeatNotice(msgspec.Struct, frozen=True):
    """Nothing new, with the current reading position."""

    next_cursor: str


StreamNotice = GapNotice | EndedNotice | FailureNotice | EndNotice | HeartbeatNotice

_NAMES: dict[type[StreamNotice], bytes] = {
    GapNotice: b"gap",
    EndedNotice: b"shard_ended",
    FailureNotice: b"error",
    EndNotice: b"end",
    HeartbeatNotice: b"heartbeat",
}


class EventEncoder(Protocol):
    """Encoder of one of the two formats."""

    kind: str

    def opening(self) -> bytes:
        """Return the beginning of the answer."""

    def records(
        self, chunk: Chunk, positions: dict[int, int], chosen: Sequence[int] | None
    ) -> bytes:
        """Encode the records of a chunk, or the selected ones, for a reader at these positions."""

    def encode_notice(
        self, what: StreamNotice, positions: dict[int, int], *, done: bool = False
    ) -> bytes:
        """Encode another event, after which the reader is at these positions.

        `done`: the reader has received everything that it requested.
        """

    def encode_heartbeat(
        self, what: HeartbeatNotice, positions: dict[int, int], *, moved: bool
    ) -> bytes:
        """Encode a heartbeat. `moved`: the reader's position has changed since it was last sent."""


class SseEncoder:
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
        offsets = (first + number + 1 for number in numbers)
        ids = event_ids(self._stream_id, positions, chunk.shard, offsets)
        lines = chunk.encoded(JSON_OF_SHARD, chosen)
        return b"".join([b"id: %b\ndata: %b\n\n" % event for event in zip(ids, lines, strict=True)])

    def encode_notice(
        self, what: StreamNotice, positions: dict[int, int], *, done: bool = False
    ) -> bytes:
        position = format_event_id(self._stream_id, positions, done=done)
        return b"event: %b\nid: %b\ndata: %b\n\n" % (
            _NAMES[type(what)],
            position.encode(),
            _encode(what),
        )

    def encode_heartbeat(
        self, what: HeartbeatNotice, positions: dict[int, int], *, moved: bool
    ) -> bytes:
        """Encode a comment, unless the position has changed."""
        return self.encode_notice(what, positions) if moved else b": still here\n\n"


class LineEncoder:
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

    def encode_notice(
        self, what: StreamNotice, positions: dict[int, int], *, done: bool = False
    ) -> bytes:
        members: dict[str, Any] = {
            "type": _NAMES[type(what)].decode(),
            **msgspec.structs.asdict(what),
        }
        return _encode(members) + b"\n"

    def encode_heartbeat(
        self, what: HeartbeatNotice, positions: dict[int, int], *, moved: bool
    ) -> bytes:
        return self.encode_notice(what, positions)


def encoder_for(accept: bytes, stream_id: str) -> EventEncoder:
    """Return the encoder for an `Accept` header: JSON Lines if it names them, else SSE."""
    if b"jsonl" in accept:
        return LineEncoder(JSON_LINES)
    if b"ndjson" in accept:
        return LineEncoder(NDJSON)
    return SseEncoder(stream_id)


def gap_notice(shard: int, gap: Gap) -> GapNotice:
    """Convert a gap to its event."""
    return GapNotice(shard, gap.first, gap.next, gap.reason)
