"""Resume positions of event readers, and heartbeats."""

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.native.record_formats import FORMATS, JSON_OF_SHARD
from api.sse.encoders import EventEncoder, HeartbeatNotice, LineEncoder, encoder_for
from api.sse.endpoint import Events
from api.sse.event_id import EventPosition, event_ids, format_event_id, parse_event_id
from consumers.feeds.blocks import Block, Chunk
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR
from storage.domain.errors import InvalidCursor, StorageUnavailable, StreamNotFound
from storage.domain.log.record_batch import CONTENT_TYPE, Record
from storage.domain.streams.lineage import FULLY_READ
from storage.domain.streams.stream import LogRecord, ShardRead

STREAM = "0123456789abcdef"
POSITIONS = st.dictionaries(
    st.integers(0, 1_000), st.integers(0, 2**53) | st.just(FULLY_READ), min_size=1, max_size=5
)


@given(POSITIONS, st.booleans())
def test_position_round_trips(positions, done):
    event_id = format_event_id(STREAM, positions, done=done)

    assert parse_event_id(event_id) == EventPosition(STREAM, positions, done)


@given(POSITIONS, st.integers(0, 1_000), st.lists(st.integers(0, 2**53)))
def test_position_may_end_in_any_shard(positions, shard, offsets):
    words = [word.decode() for word in event_ids(STREAM, positions, shard, offsets)]

    assert [parse_event_id(word) for word in words] == [
        EventPosition(STREAM, {**positions, shard: offset}) for offset in offsets
    ]


@given(POSITIONS, st.booleans(), st.data())
def test_cut_position_is_rejected(positions, done, data):
    """A cut id read as an earlier position, and its reader got records again."""
    event_id = format_event_id(STREAM, positions, done=done)
    size = data.draw(st.integers(1, len(event_id) - 1))

    with pytest.raises(InvalidCursor):
        parse_event_id(event_id[:size])
    with pytest.raises(InvalidCursor):
        parse_event_id(event_id[size:])


@given(POSITIONS, st.data())
def test_changed_position_is_rejected(positions, data):
    event_id = format_event_id(STREAM, positions)
    place = data.draw(st.integers(0, len(event_id) - 1))
    digit = data.draw(st.sampled_from("0123456789abcdef").filter(lambda d: d != event_id[place]))

    with pytest.raises(InvalidCursor):
        parse_event_id(event_id[:place] + digit + event_id[place + 1 :])


@given(POSITIONS, st.booleans())
def test_former_position_is_accepted(positions, done):
    """Browsers reconnect during an upgrade with ids that have no checksum."""
    word, _, _ = format_event_id(STREAM, positions, done=done).rpartition("~")

    assert parse_event_id(word.replace("~", "/")) == EventPosition(STREAM, positions, done)


@pytest.mark.parametrize(
    "word",
    [
        "",
        "/",
        STREAM,
        f"{STREAM}/",
        f"{STREAM}/0",
        f"{STREAM}/0:-1",
        f"{STREAM}/0:1,",
        "x/0:1",
        f"{STREAM}/0:1/don",
        f"{STREAM}~0:1",
        f"{STREAM}~0:1~é",
    ],
)
def test_malformed_position_is_rejected(word):
    with pytest.raises(InvalidCursor):
        parse_event_id(word)


def test_record_is_encoded_on_one_line():
    json = ((CONTENT_TYPE, "", b"application/json"),)
    for record in (
        Record(b'{\n "a":\r\n "x\\ny" }', "k", json),
        Record("a\u2028b\u2029c\x85d\ne\rf".encode(), "k\u2028"),
        Record(b"\xff\n"),
    ):
        line = FORMATS[JSON_OF_SHARD].encode(3, LogRecord(5, 1, record))

        assert len(line.decode().splitlines()) == 1
        text = msgspec.json.decode(line)
        assert (text["shard"], text["offset"]) == (3, 5)
    assert text["data_base64"] == "/wo="


# Heartbeats


class SomeTail:
    """Return the given items in turn, and then nothing."""

    def __init__(self, *given: Chunk | Exception | None, follows: bool = True) -> None:
        self._given = list(given)
        self.follows = follows
        self.positions = {0: 0}
        self.is_over = False
        self.has_ended = False

    async def __aenter__(self) -> "SomeTail":
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def next(self, _: int) -> Chunk | None:
        await asyncio.sleep(0.002)
        item = self._given.pop(0) if self._given else None
        if isinstance(item, Exception):
            raise item
        return item

    async def take(self, chunk: Chunk) -> None:
        self.positions[0] = chunk.next_offset


def chunk(*bodies: bytes) -> Chunk:
    records = [LogRecord(nth, 1, Record(body, body.decode())) for nth, body in enumerate(bodies)]
    read = ShardRead(0, records, len(records), 0, len(records), 0)
    return Block(0, read, FORMATS).chunk(0, len(records))


def events(tail: SomeTail, text: EventEncoder, wanted: Any = None) -> Events:
    from consumers.feeds.feed import Feeds

    call: Any = SimpleNamespace(
        feeds=Feeds(None, FORMATS),  # type: ignore[arg-type]
        query=SimpleNamespace(limit=None),
        principal=LOCAL_ADMINISTRATOR,
        trace=None,
        metrics=SimpleNamespace(read=lambda _: None),
        segments=["", "v1", "streams", "s", "events"],
        request_id=b"id",
    )
    held: Any = tail
    return Events(
        call=call,
        tail=held,
        text=text,
        cursor=lambda positions: f"at {positions[0]}",
        record_filter=wanted,
        heartbeat_ms=1,
    )


async def first(told: Events, count: int) -> list[bytes]:
    actual_pieces = []
    pieces = told.pieces()
    async for piece in pieces:
        actual_pieces.append(piece)
        if len(actual_pieces) == count:
            break
    await pieces.aclose()
    return actual_pieces


async def test_line_format_sends_heartbeats_with_cursor():
    returned_events = await first(
        events(SomeTail(chunk(b"a"), None), encoder_for(b"application/jsonl", "")), 2
    )

    assert returned_events[0].startswith(b'{"shard":0,"offset":0')
    assert msgspec.json.decode(returned_events[1]) == {"type": "heartbeat", "next_cursor": "at 1"}


async def test_sse_comment_keeps_connection_alive():
    returned_events = await first(events(SomeTail(chunk(b"a")), encoder_for(b"*/*", STREAM)), 3)

    assert returned_events[0] == b"retry: 2000\n\n"
    assert returned_events[1].startswith(b"id: 0123456789abcdef~0:1~411decdf\ndata: {")
    assert returned_events[2] == b": still here\n\n"


async def test_heartbeat_advances_position_when_filter_matches_nothing():
    tail = SomeTail(chunk(b"a", b"b"))
    returned_events = await first(events(tail, encoder_for(b"", STREAM), lambda *_: False), 3)

    assert returned_events[1] == (
        b'event: heartbeat\nid: 0123456789abcdef~0:2~d814bd65\ndata: {"next_cursor":"at 2"}\n\n'
    )
    assert returned_events[2] == b": still here\n\n"


async def test_follower_survives_outage(monkeypatch):
    monkeypatch.setattr("api.sse.endpoint.OUTAGE_PAUSE_S", 0.001)
    tail = SomeTail(StorageUnavailable(), StorageUnavailable(), chunk(b"a"))

    returned_events = await first(events(tail, LineEncoder("x")), 3)

    assert any(piece.startswith(b'{"shard":0,"offset":0') for piece in returned_events)


@pytest.mark.parametrize(
    ("tail", "code"),
    [
        (SomeTail(StreamNotFound()), "stream_not_found"),
        (SomeTail(StorageUnavailable(), follows=False), "storage_unavailable"),
        (SomeTail(RuntimeError("a secret")), "internal_error"),
    ],
)
async def test_fatal_error_is_sent_as_problem(tail, code):
    returned_events = await first(events(tail, LineEncoder("x")), 9)

    failure = msgspec.json.decode(returned_events[-1])
    assert failure["type"] == "error"
    assert failure["problem"]["code"] == code
    assert failure["problem"]["request_id"] == "id"
    assert failure["next_cursor"] == "at 0"
    assert b"secret" not in returned_events[-1]


def test_heartbeat_has_form_of_the_format():
    heartbeat = HeartbeatNotice("c")

    assert (
        encoder_for(b"", STREAM).encode_heartbeat(heartbeat, {0: 1}, moved=False).startswith(b":")
    )
    assert encoder_for(b"application/x-ndjson", STREAM).kind == "application/x-ndjson"
