"""Limits of HTTP/2 connections: floods, memory, and time."""

import json

import pytest
from h2.errors import ErrorCodes
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    ExtensionFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    SettingsFrame,
)

from storage.domain import limits
from tests.unit.http2.peer import KEEP_ALIVE_S, turns

HEAD_S = limits.HEAD_MS_MAX / 1_000
BODY_S = limits.BODY_MS_MAX / 1_000
STALL_S = limits.HTTP2_STALL_MS_MAX / 1_000
MIB = 1024 * 1024


def refused(peer):
    return [
        stream_id
        for stream_id, answer in peer.answers.items()
        if answer.reset == ErrorCodes.REFUSED_STREAM
    ]


# Streams


async def test_stream_beyond_the_limit_is_refused(peer, app):
    peer.client.remote_settings.max_concurrent_streams = 10_000
    peer.client.remote_settings.acknowledge()
    streams = [peer.begin(b"/wait") for _ in range(limits.HTTP2_STREAMS_MAX + 10)]
    await peer.exchange()
    before = refused(peer)
    app.more.set()
    await peer.exchange()

    assert before == streams[-10:]
    assert app.running_max == limits.HTTP2_STREAMS_MAX
    served = [stream_id for stream_id, answer in peer.answers.items() if answer.body == b"waited"]
    assert served == streams[:-10]
    assert (await peer.ask(b"/")).status == 200


async def test_resets_end_the_connection_above_a_rate(peer, app):
    """CVE-2023-44487, rapid reset: the work of reset requests was not limited."""
    for _ in range(limits.HTTP2_RESETS_MAX):
        peer.client.reset_stream(peer.begin(b"/echo", ends=False), ErrorCodes.CANCEL)
    await peer.exchange()
    before = peer.error
    peer.client.reset_stream(peer.begin(b"/echo", ends=False), ErrorCodes.CANCEL)
    await peer.exchange()

    assert before is None
    assert peer.error == ErrorCodes.ENHANCE_YOUR_CALM
    assert app.running_max <= limits.HTTP2_STREAMS_MAX


async def test_allowance_of_resets_grows_with_time(peer):
    peer.begin(b"/wait")  # so that it is not idle
    for _ in range(4):
        for _ in range(limits.HTTP2_RESETS_MAX // 2):
            peer.client.reset_stream(peer.begin(b"/echo", ends=False), ErrorCodes.CANCEL)
        await peer.exchange()
        peer.clock.advance(limits.HTTP2_RESETS_MAX / 2 / limits.HTTP2_RESETS_PER_SECOND_MAX)

    assert peer.error is None


async def test_streams_that_run_after_their_reset_count(peer, app):
    """Streams of work that goes on after a reset would otherwise be unlimited."""
    for _ in range(3 * limits.HTTP2_STREAMS_MAX):
        peer.client.reset_stream(peer.begin(b"/wait"), ErrorCodes.CANCEL)
        await peer.exchange(2)

    assert app.running_max == limits.HTTP2_STREAMS_MAX


async def test_errors_that_reset_streams_count_as_resets(peer):
    """CVE-2025-8671, made you reset: the client lets the server reset its streams."""
    window = b"\x00\x00\x04\x08\x00%b\x7f\xff\xff\xff"
    for _ in range(limits.HTTP2_RESETS_MAX + 1):
        stream_id = peer.begin(b"/wait")
        peer.send()
        if not peer.transport.closed:
            peer.protocol.data_received(window % stream_id.to_bytes(4, "big"))
        await turns(2)
        peer.read()

    assert peer.error == ErrorCodes.ENHANCE_YOUR_CALM


@pytest.mark.parametrize(
    "frame",
    [
        PingFrame(opaque_data=b"12345678"),
        PingFrame(opaque_data=b"12345678", flags=["ACK"]),
        SettingsFrame(settings={3: 100}),
        SettingsFrame(flags=["ACK"]),
        PriorityFrame(1, depends_on=0, stream_weight=1),
        DataFrame(1),
        ExtensionFrame(0xAA, 0),
    ],
    ids=lambda frame: type(frame).__name__ + "".join(frame.flags),
)
async def test_frames_that_carry_nothing_are_limited(peer, frame):
    peer.begin(b"/echo", method=b"POST", ends=False)
    frames = [frame] * (limits.HTTP2_IDLE_FRAMES_MAX - 10)
    peer.send(*frames)
    await turns()
    before = peer.transport.closed
    peer.send(*[frame] * 20)
    peer.read()

    assert not before
    assert peer.error == ErrorCodes.ENHANCE_YOUR_CALM
    assert peer.transport.closed


# Heads


@pytest.mark.parametrize(
    "fields",
    [
        [(b"a", b"b")] * (limits.HEAD_HEADERS_MAX + 1),
        [(b"a", b"b" * 16_000), (b"c", b"d" * 16_000), (b"e", b"f" * 33_700)],
    ],
    ids=["number", "bytes"],
)
async def test_head_beyond_limit_is_refused(peer, app, fields):
    native = await peer.ask(b"/", fields)
    aws = await peer.ask(b"/", [*fields, (b"x-amz-target", b"Kinesis_20131202.PutRecord")])

    assert (native.status, json.loads(native.body)["code"]) == (431, "headers_too_large")
    assert (aws.status, "__type" in json.loads(aws.body)) == (413, True)
    assert app.scopes == []
    assert (await peer.ask(b"/")).status == 200


async def test_largest_head_is_accepted(peer, app):
    fields = [(b"a%d" % number, b"b") for number in range(limits.HEAD_HEADERS_MAX - 1)]

    assert (await peer.ask(b"/", fields)).status == 200


async def test_header_list_far_beyond_limit_ends_the_connection(peer):
    peer.client.max_outbound_frame_size = 16_384
    await peer.ask(b"/", [(b"a%d" % number, b"b" * 4_000) for number in range(40)])

    assert peer.error == ErrorCodes.ENHANCE_YOUR_CALM


@pytest.mark.parametrize(
    ("size", "code"),
    [(16_000, ErrorCodes.ENHANCE_YOUR_CALM), (0, ErrorCodes.PROTOCOL_ERROR)],
)
async def test_continuation_flood_ends_the_connection(peer, app, size, code):
    """CVE-2024-27316: a header block without end."""
    received = 0
    peer.send(HeadersFrame(1, b"\x00"))
    for _ in range(10_000):
        if peer.transport.closed:
            break
        peer.send(ContinuationFrame(1, b"\x00" * size))
        received += size
    peer.read()

    assert peer.error == code
    assert received < limits.HTTP2_HEADER_BLOCK_BYTES_MAX + 32_000


async def test_frame_beyond_the_maximum_size_is_an_error(peer):
    peer.begin(b"/echo", method=b"POST", ends=False)
    peer.send(DataFrame(1, b"x" * 16_385))
    peer.read()

    assert peer.error == ErrorCodes.FRAME_SIZE_ERROR


@pytest.mark.parametrize(
    "data",
    [b"\x00\x00\x10\x01\x04", HeadersFrame(1, b"\x82").serialize()],
    ids=["frame", "header block"],
)
async def test_slow_head_ends_the_connection(peer, data):
    peer.begin(b"/wait")  # so that it is not idle
    await peer.exchange()
    peer.protocol.data_received(data)
    peer.clock.advance(HEAD_S - 1)
    before = peer.transport.closed
    peer.clock.advance(2)
    peer.read()

    assert not before
    assert peer.error == ErrorCodes.ENHANCE_YOUR_CALM


async def test_priorities_of_requests_are_not_counted(peer):
    """Older clients, such as curl, send one with each request."""
    for _ in range(limits.HTTP2_IDLE_FRAMES_MAX + 10):
        stream_id = peer.begin(b"/empty", priority=100)
        await peer.exchange(3)
        assert peer.answers[stream_id].status == 200

    assert peer.error is None


# Bodies


async def test_upload_whose_frames_arrive_in_parts_is_not_slow(peer):
    """Each part ended within a frame, which counted as one frame that did not end."""
    stream_id = peer.begin(b"/echo", method=b"POST", ends=False)
    await peer.exchange()
    rest = b""
    for _ in range(3 * int(HEAD_S)):
        peer.client.send_data(stream_id, b"x" * limits.BODY_BYTES_PER_SECOND_MIN)
        data = rest + peer.client.data_to_send()
        data, rest = data[:-100], data[-100:]
        peer.protocol.data_received(data)
        await turns(5)
        peer.read()
        peer.clock.advance(1)

    assert peer.error is None
    assert peer.answers[stream_id].reset is None


@pytest.mark.parametrize("sends", [0, 60 * limits.BODY_BYTES_PER_SECOND_MIN])
async def test_slow_body_resets_its_stream(peer, app, sends):
    slow = peer.begin(b"/echo", method=b"POST", ends=False)
    other = peer.begin(b"/wait")
    await peer.exchange()
    peer.clock.advance(HEAD_S + BODY_S - 1)
    for place in range(0, sends, 10_240):
        peer.client.send_data(slow, b"x" * min(10_240, sends - place))
        await peer.exchange()
    peer.clock.advance(sends / limits.BODY_BYTES_PER_SECOND_MIN)
    await peer.exchange()
    before = peer.answers[slow].reset
    peer.clock.advance(3)
    await peer.exchange()

    assert before is None
    assert peer.answers[slow].reset == ErrorCodes.CANCEL
    assert app.received[-1]["type"] == "http.disconnect"
    app.more.set()
    await peer.exchange()
    assert peer.answers[other].body == b"waited"


async def test_body_that_is_not_read_fills_its_window_only(peer, app):
    stream_id = peer.begin(b"/wait", method=b"POST", ends=False)
    sent = 0
    while size := min(peer.client.local_flow_control_window(stream_id), 16_384):
        peer.client.send_data(stream_id, b"x" * size)
        sent += size
        await peer.exchange()
    peer.clock.advance(10 * (HEAD_S + BODY_S))
    await peer.exchange()

    assert sent == limits.HTTP2_WINDOW_BYTES
    assert peer.answers[stream_id].reset is None  # the client waits for the server


async def test_windows_of_all_streams_can_be_full_at_once(peer):
    streams = [
        peer.begin(b"/wait", method=b"POST", ends=False) for _ in range(limits.HTTP2_STREAMS_MAX)
    ]
    for stream_id in streams:
        for _ in range(limits.HTTP2_WINDOW_BYTES // 16_384):
            peer.client.send_data(stream_id, b"x" * 16_384)
    await peer.exchange()

    assert peer.error is None
    assert peer.client.outbound_flow_control_window < 65_536


# Responses that are not read


async def test_unread_response_is_reset_after_a_while(peer):
    peer.opens_windows = False
    stalled = peer.begin(b"/big?100000")
    await peer.exchange()
    peer.clock.advance(STALL_S - 1)
    before = peer.answers[stalled].reset
    peer.clock.advance(2)
    await peer.exchange()

    assert before is None
    assert peer.answers[stalled].reset == ErrorCodes.CANCEL
    assert peer.open_count == 0


async def test_requests_wait_while_much_is_unsent(peer, app):
    peer.opens_windows = False
    large = [peer.begin(b"/big?%d" % (4 * MIB)) for _ in range(5)]
    await peer.exchange()
    later = peer.begin(b"/")
    await peer.exchange()
    started = len(app.scopes)
    peer.clock.advance(STALL_S + 1)
    await peer.exchange()

    assert started == len(large)
    assert peer.answers[later].status == 200


async def test_waiting_request_can_be_reset(peer, app):
    peer.opens_windows = False
    for _ in range(5):
        peer.begin(b"/big?%d" % (4 * MIB))
    await peer.exchange()
    peer.client.reset_stream(peer.begin(b"/"), ErrorCodes.CANCEL)
    await peer.exchange()

    assert len(app.scopes) == 5
    assert peer.open_count == 5


async def test_streaming_response_stops_when_the_client_stops_reading(peer):
    peer.client.update_settings({4: 2**31 - 1})
    peer.client.increment_flow_control_window(2**30)
    await peer.exchange()
    peer.transport.reads = False
    peer.begin(b"/unlimited")
    await peer.exchange(3_000)
    buffered = len(peer.transport.buffer)
    peer.clock.advance(STALL_S + 2)
    await turns()

    assert 65_536 < buffered < 3 * 65_536
    assert peer.transport.aborted


async def test_answers_to_a_client_that_does_not_read_are_limited(peer, monkeypatch):
    """Each frame for a closed stream is answered with a reset."""
    monkeypatch.setattr(limits, "HTTP2_BACKLOG_BYTES_MAX", 100_000)
    stream_id = peer.begin(b"/refuse", method=b"POST", ends=False)
    await peer.exchange()
    peer.transport.reads = False
    late = DataFrame(stream_id, b"").serialize() * 1_000
    for _ in range(100):
        if peer.transport.closed:
            break
        peer.protocol.data_received(late)
        await turns(3)

    assert peer.transport.aborted
    assert 100_000 < len(peer.transport.buffer) < 120_000


async def test_closed_connection_does_not_wait_for_its_reader(peer):
    peer.transport.reads = False
    peer.send(*[PingFrame(opaque_data=b"12345678")] * 2_000)
    assert peer.transport.closed
    peer.clock.advance(HEAD_S + 1)

    assert peer.transport.aborted


# Idle connections


async def test_idle_connection_is_closed_after_timeout(peer):
    await peer.ask(b"/")
    peer.clock.advance(KEEP_ALIVE_S)
    await peer.exchange()

    assert peer.error == ErrorCodes.NO_ERROR
    assert peer.transport.closed


async def test_timeout_begins_with_the_last_response(peer, app):
    waiting = peer.begin(b"/wait")
    await peer.exchange()
    peer.clock.advance(3 * KEEP_ALIVE_S)
    app.more.set()
    await peer.exchange()
    peer.clock.advance(KEEP_ALIVE_S - 1)
    before = peer.transport.closed
    peer.clock.advance(KEEP_ALIVE_S + 1)
    await peer.exchange()

    assert peer.answers[waiting].body == b"waited"
    assert not before
    assert peer.transport.closed


async def test_pings_do_not_keep_a_connection_open(peer):
    for _ in range(KEEP_ALIVE_S + 1):
        peer.clock.advance(1)
        if not peer.transport.closed:
            peer.client.ping(b"12345678")
        await peer.exchange()

    assert peer.transport.closed
