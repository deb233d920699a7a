"""Start position and end of a streaming read, from the request."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from api.http.query import RecordTerms
from api.http.request import Call
from api.native.cursors import decode_records_cursor
from api.native.fields import moment_ms
from api.native.records import Count, Moment, RecordsMax, Start
from api.sse.event_id import EventPosition, is_event_id, parse_event_id
from consumers.feeds.stream_tail import TO_ITS_END
from storage.domain import limits
from storage.domain.errors import (
    InvalidCursor,
    ShardNotFound,
    StreamRecreated,
    ValidationFailed,
)
from storage.domain.streams.lineage import FULLY_READ, check_positions, needs_refresh, read_frontier
from storage.domain.streams.stream import ShardState, Stream
from storage.streams.seek import offset_since, positions_since


class ReadEvents(RecordTerms, forbid_unknown_fields=True, rename={"start": "from"}):
    """Start position, filter and limit of a read.

    The position is `from`, `time` or `cursor`; without any, the oldest records.
    """

    start: Start | None = None
    time: (
        Annotated[Moment, Meta(description="Read records that arrived at or after this time.")]
        | None
    ) = None
    cursor: Annotated[
        str,
        Meta(description="`next_cursor` of any response for this stream, or the id of an event."),
    ] = ""
    limit: (
        Annotated[int, Meta(ge=1, le=limits.OFFSET_MAX, description="Number of records.")] | None
    ) = None
    follow: (
        Annotated[
            bool,
            Meta(
                description="false: stop at the current end of the stream, which is the "
                "default for JSON lines."
            ),
        ]
        | None
    ) = None


class ReadShardEvents(ReadEvents, forbid_unknown_fields=True, rename={"start": "from"}):
    """Read of one shard, which may also start at an `offset`, or with its last records."""

    offset: Annotated[Count, Meta(description="Offset of the first record to read.")] | None = None
    tail: Annotated[RecordsMax, Meta(description="Read the last N records.")] | None = None


class StartPosition(msgspec.Struct, frozen=True):
    """A reader's positions, and the current end of each shard.

    `is_done`: it has received everything that it requested.
    """

    stream_id: str
    positions: dict[int, int]
    tips: dict[int, int]
    is_done: bool = False


async def stream_start(call: Call[ReadEvents]) -> StartPosition:
    """Return the start of a read of all shards.

    A `Last-Event-ID` takes precedence over the query, which a browser repeats. Raises InvalidCursor, OffsetOutOfRange,
    StreamNotFound, ValidationFailed.
    """
    query = call.query
    check_one(query.start, query.time, query.cursor or None)
    position = _resumed_position(call)
    stream = await _stream(call, position)
    if position is not None and needs_refresh(stream, position.positions):
        stream = await call.storage.catalog.fresh_stream(call.stream, stream.stream_id)
    states = await call.storage.record_reader.shards(call.stream, stream.stream_id)
    if position is None:
        position = EventPosition(stream.stream_id, await _start_in_all(call, stream, states))
    _check_positions(position.positions, states)
    return StartPosition(stream.stream_id, position.positions, _tips(states), position.is_done)


async def shard_start(call: Call[ReadShardEvents]) -> StartPosition:
    """Return the start of a read of one shard.

    Raises InvalidCursor, OffsetOutOfRange, ShardNotFound, StreamNotFound, ValidationFailed.
    """
    query, shard = call.query, call.shard
    check_one(query.start, query.time, query.cursor or None, query.offset, query.tail)
    position = _resumed_position(call)
    stream = await _stream(call, position)
    if needs_refresh(stream, {shard: 0}):
        stream = await call.storage.catalog.fresh_stream(call.stream)
    stream.shard(shard)
    if position is not None and position.positions.keys() != {shard}:
        raise InvalidCursor("The cursor belongs to a different shard.")
    states = [
        state
        for state in await call.storage.record_reader.shards(call.stream, stream.stream_id)
        if state.shard.index == shard
    ]
    if not states:
        raise ShardNotFound(f"Stream '{call.stream.name}' has no shard {shard}.")
    if position is None:
        first = await _start_in_shard(call, stream, states[0])
        position = EventPosition(stream.stream_id, {shard: first})
    _check_positions(position.positions, states)
    return StartPosition(stream.stream_id, position.positions, _tips(states), position.is_done)


def check_one(*given: Any) -> None:
    """Raise ValidationFailed when more than one start position is given."""
    if sum(one is not None for one in given) > 1:
        detail = "Specify only one of 'from', 'time', 'cursor', 'offset' and 'tail'"
        raise ValidationFailed.at("/from", detail, "conflict")


async def _stream(call: Call[Any], position: EventPosition | None) -> Stream:
    """Return the stream that the position belongs to. Raises InvalidCursor, StreamNotFound."""
    catalog = call.storage.catalog
    if position is None:
        return await catalog.stream(call.stream)
    try:
        return await catalog.stream(call.stream, position.stream_id)
    except StreamRecreated:
        raise InvalidCursor("The cursor belongs to a deleted stream.") from None


def _resumed_position(call: Call[Any]) -> EventPosition | None:
    """Return the position that the request's cursor names. Raises InvalidCursor."""
    last = call.headers.get(b"last-event-id", b"").decode("latin-1")
    word = last or call.query.cursor
    if not word:
        return None
    if not is_event_id(word):
        return EventPosition(*decode_records_cursor(word))
    return parse_event_id(word)


def _check_positions(positions: Mapping[int, int], states: Sequence[ShardState]) -> None:
    """Raise OffsetOutOfRange for an offset beyond the end, InvalidCursor for unknown shards."""
    if any(offset < FULLY_READ for offset in positions.values()):
        raise InvalidCursor
    try:
        check_positions(positions, states)
    except ShardNotFound:
        raise InvalidCursor from None


def _tips(states: Sequence[ShardState]) -> dict[int, int]:
    return {
        state.shard.index: state.next if state.shard.is_open else TO_ITS_END for state in states
    }


async def _start_in_all(
    call: Call[ReadEvents], stream: Stream, states: Sequence[ShardState]
) -> dict[int, int]:
    query = call.query
    if query.time is not None:
        storage = call.storage
        time_ms = moment_ms(query.time)
        return await positions_since(
            storage.record_reader, storage.catalog, call.stream, time_ms, stream.stream_id
        )
    if query.start is Start.LATEST:
        return {state.shard.index: state.next for state in states if state.shard.is_open}
    begun = read_frontier(stream, {})
    return {state.shard.index: state.start for state in states if state.shard.index in begun}


async def _start_in_shard(call: Call[ReadShardEvents], stream: Stream, state: ShardState) -> int:
    query = call.query
    if query.offset is not None:
        return query.offset
    if query.tail is not None:
        return max(state.start, state.next - query.tail)
    if query.time is not None:
        time_ms = moment_ms(query.time)
        return await offset_since(
            call.storage.record_reader, call.stream, state.shard.index, time_ms, stream.stream_id
        )
    return state.next if query.start is Start.LATEST else state.start
