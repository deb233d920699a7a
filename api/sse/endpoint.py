"""Streaming reads: server-sent events and JSON Lines.

the request ─ problem? ─▶ opening ▶ records, gaps, ends of shards ▶ the end, where there is one
                             └ nothing for a while: a heartbeat, with the reading position
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from api.http.request import Call
from api.http.responses import RequestContext, log_failure
from api.http.routing import FastRouter, StreamingResponse
from api.native.cursors import encode_records_cursor
from api.native.examples import Example
from api.native.problems import problem
from api.native.records import RecordOut
from api.sse.encoders import (
    EVENT_STREAM,
    JSON_LINES,
    EndedNotice,
    EndNotice,
    EventEncoder,
    FailureNotice,
    HeartbeatNotice,
    SseEncoder,
    encoder_for,
    gap_notice,
)
from api.sse.event_id import format_event_id
from api.sse.start_position import (
    ReadEvents,
    ReadShardEvents,
    StartPosition,
    shard_start,
    stream_start,
)
from consumers.feeds.blocks import Chunk
from consumers.feeds.feed import Feeds
from consumers.feeds.stream_tail import Tail
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import MillstreamError, StorageBusy
from storage.domain.streams.record_filter import Selects, selects

fast_routes = FastRouter()

OUTAGE_PAUSE_S = 1.0  # before a store that did not answer is called again
_HEADERS = ((b"x-accel-buffering", b"no"),)
_LASTING = {
    EVENT_STREAM: "One event per record, whose id is the position to resume from; also "
    "gap, shard_ended, error and end.",
    JSON_LINES: "One line per record; also lines with a type: gap, shard_ended, "
    "heartbeat, error and end.",
}

Cursor = Callable[[Mapping[int, int]], str]
"""Encoder of a position as the cursor with which reading continues."""


@fast_routes.get(
    "/v1/streams/{stream}/events", answer=RecordOut, lasting=_LASTING, action=Action.STREAM_READ
)
async def read_events(call: Call[ReadEvents]) -> StreamingResponse:
    """Stream new records from all shards (server-sent events or JSON Lines).

    The format is server-sent events, or JSON Lines if `Accept` names application/jsonl. Each shard is read in order, and
    after its parents. The header `Last-Event-ID` continues after that event. With `follow=false` the answer ends where the
    stream ends now; for JSON Lines this is the default. An answer that completed has a last event or line `end`.
    """
    start = await stream_start(call)
    cursor = partial(encode_records_cursor, start.stream_id)
    return _streaming_response(call, start, cursor, alone=False)


@fast_routes.get(
    "/v1/streams/{stream}/shards/{shard}/events",
    answer=RecordOut,
    lasting=_LASTING,
    action=Action.STREAM_READ,
)
async def read_shard_events(call: Call[ReadShardEvents]) -> StreamingResponse:
    """Stream new records from one shard (server-sent events or JSON Lines).

    As for all shards. The answer ends with the shard, when that is split or merged; `shard_ended` names the children.
    """
    start = await shard_start(call)
    return _streaming_response(call, start, partial(format_event_id, start.stream_id), alone=True)


def _streaming_response(
    call: Call[Any], start: StartPosition, cursor: Cursor, *, alone: bool
) -> StreamingResponse:
    query: ReadEvents = call.query
    record_filter = selects(query.record_filter(), call.stream)
    text = encoder_for(call.headers.get(b"accept", b""), start.stream_id)
    if start.is_done:
        return StreamingResponse(text.kind, status=204)  # stops a browser from reconnecting
    call.feeds.check_capacity()
    follows = isinstance(text, SseEncoder) if query.follow is None else query.follow
    tail = Tail(
        call.feeds,
        call.storage.catalog,
        call.stream,
        start.positions,
        stream_id=start.stream_id,
        until=None if follows else start.tips,
        alone=alone,
    )
    return StreamingResponse(
        text.kind, _HEADERS, Events(call, tail, text, cursor, record_filter).pieces()
    )


class Events:
    """One streaming answer."""

    __slots__ = (
        "_around",
        "_count",
        "_cursor",
        "_feeds",
        "_heartbeat_ms",
        "_instance",
        "_left",
        "_moved",
        "_record_filter",
        "_request_id",
        "_tail",
        "_text",
        "_wrote_at",
    )

    def __init__(
        self,
        call: Call[Any],
        tail: Tail,
        text: EventEncoder,
        cursor: Cursor,
        record_filter: Selects | None,
        *,
        heartbeat_ms: int = limits.EVENTS_HEARTBEAT_MS,
    ) -> None:
        self._count = call.metrics
        self._instance = "/".join(call.segments)
        self._request_id = call.request_id
        self._around = RequestContext(call.principal, call.trace)
        self._feeds: Feeds = call.feeds
        self._tail = tail
        self._text = text
        self._cursor = cursor
        self._record_filter = record_filter
        self._heartbeat_ms = heartbeat_ms
        self._left: int | None = call.query.limit
        self._wrote_at = 0.0
        self._moved = False  # whether the position changed since the last write

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Yield the bytes of the answer in pieces, none of them empty."""
        self._wrote_at = _now()
        if opening := self._text.opening():
            yield opening
        try:
            self._feeds.begin()
        except StorageBusy as error:
            yield self._failure(error)
            return
        try:
            async with self._tail:
                while not (reason := self._over()):
                    if piece := await self._next():
                        self._wrote_at, self._moved = _now(), False
                        yield piece
            yield self._end(reason)
        except Exception as error:
            yield self._failure(error)
        finally:
            self._feeds.finish()

    def _over(self) -> str:
        """Return the reason why the answer ends here; empty while it continues."""
        if self._left == 0:
            return "limit"
        if self._tail.is_over:
            return "shard_end" if self._tail.has_ended else "tip"
        return "draining" if self._feeds.draining else ""

    async def _next(self) -> bytes:
        chunk = await self._read()
        piece = b"" if chunk is None else await self._encode_chunk(chunk)
        quiet_ms = (_now() - self._wrote_at) * limits.SECOND_MS
        if piece or quiet_ms < self._heartbeat_ms:
            return piece
        positions = self._tail.positions
        heartbeat = HeartbeatNotice(self._cursor(positions))
        return self._text.encode_heartbeat(heartbeat, positions, moved=self._moved)

    async def _read(self) -> Chunk | None:
        """Return the next chunk; None when there is nothing for a while.

        A follower outlives an outage.
        """
        try:
            return await self._tail.next(self._heartbeat_ms)
        except MillstreamError as error:
            if not (self._tail.follows and error.code.retryable):
                raise
        await asyncio.sleep(OUTAGE_PAUSE_S)
        return None

    async def _encode_chunk(self, chunk: Chunk) -> bytes:
        """Encode a chunk up to the limit, and advance the position past it."""
        positions, shard = self._tail.positions, chunk.shard
        payload = b""
        if chunk.gap is not None:
            behind = {**positions, shard: chunk.gap.next} if shard in positions else positions
            payload = self._text.encode_notice(gap_notice(shard, chunk.gap), behind)
        left = len(chunk) if self._left is None else self._left
        part, chosen, count, _ = chunk.select(self._record_filter, left)
        if count:
            payload += self._text.records(part, positions, chosen)
            self._count.read(count)
            if self._left is not None:
                self._left -= count
        await self._tail.take(part)
        self._moved = True
        if part.ended:
            ended = EndedNotice(shard, [child.index for child in part.children])
            payload += self._text.encode_notice(ended, self._tail.positions)
        return payload

    def _end(self, reason: str) -> bytes:
        positions = self._tail.positions
        event = EndNotice(reason, self._cursor(positions))
        return self._text.encode_notice(event, positions, done=reason != "draining")

    def _failure(self, error: Exception) -> bytes:
        request_id = self._request_id
        details = problem(error, instance=self._instance, request_id=request_id.decode())
        log_failure(error, self._instance, details.status, request_id, self._around)
        positions = self._tail.positions
        failure = FailureNotice(msgspec.Raw(details.body), self._cursor(positions))
        return self._text.encode_notice(failure, positions)


def _now() -> float:
    return asyncio.get_running_loop().time()


# Examples of the OpenAPI document

EXAMPLES = {
    "read_events": Example("/v1/streams/clicks/events?follow=false"),
    "read_shard_events": Example("/v1/streams/clicks/shards/0/events?follow=false&limit=10"),
}
