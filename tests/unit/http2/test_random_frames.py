"""Random sequences of frames: nothing is raised or logged, and no stream is left."""

import asyncio
from typing import Any

from hpack import Encoder
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    ExtensionFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.http2_client import PREFACE
from tests.unit.http2.peer import App, Peer, captured_failures, turns

PATHS = (b"/echo", b"/wait", b"/big?200000", b"/watch", b"/refuse", b"/nothing", b"/", b"/a#b")
STREAMS = st.integers(0, 9)
FLAGS = st.sets(st.sampled_from(["END_STREAM", "END_HEADERS"]))
SHORT = st.binary(max_size=40)
FIELDS = st.lists(
    st.tuples(
        st.sampled_from(
            [b"cookie", b"content-length", b"te", b"connection", b"expect", b":path", b"host", b"x"]
        ),
        st.sampled_from([b"", b"1", b"100-continue", b"trailers", b"/", b"a\rb"]),
    ),
    max_size=3,
)


def block(path: bytes, fields: list[tuple[bytes, bytes]]) -> bytes:
    """A header block that does not depend on those before it."""
    head = [(b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"a"), (b":path", path)]
    encoder = Encoder()
    encoder.header_table_size = 0
    return encoder.encode([*head, *fields])


def framed(frame: Frame, flags: set[str]) -> bytes:
    for flag in flags:
        frame.flags.add(flag)
    return frame.serialize()


REQUESTS = st.builds(
    lambda stream, path, fields, flags, data: (
        framed(HeadersFrame(stream, block(path, fields)), {"END_HEADERS", *flags})
        + (b"" if "END_STREAM" in flags else framed(DataFrame(stream, data), {"END_STREAM"}))
    ),
    st.sampled_from([1, 3, 5, 7, 9, 11, 13]),
    st.sampled_from(PATHS),
    FIELDS,
    st.sets(st.just("END_STREAM")),
    SHORT,
)
FRAMES = st.one_of(
    REQUESTS,
    st.builds(
        lambda stream, data, flags: framed(HeadersFrame(max(stream, 1), data), flags),
        STREAMS,
        st.one_of(SHORT, st.builds(block, st.sampled_from(PATHS), FIELDS)),
        FLAGS,
    ),
    st.builds(
        lambda stream, data, flags: framed(
            ContinuationFrame(max(stream, 1), data), flags - {"END_STREAM"}
        ),
        STREAMS,
        SHORT,
        FLAGS,
    ),
    st.builds(
        lambda stream, data, flags: framed(
            DataFrame(max(stream, 1), data), flags - {"END_HEADERS"}
        ),
        STREAMS,
        SHORT,
        FLAGS,
    ),
    st.builds(
        lambda stream, code: RstStreamFrame(max(stream, 1), error_code=code).serialize(),
        STREAMS,
        STREAMS,
    ),
    st.builds(
        lambda stream, size: WindowUpdateFrame(stream, window_increment=size).serialize(),
        STREAMS,
        st.sampled_from([1, 1_000, 2**31 - 1]),
    ),
    st.builds(
        lambda values: SettingsFrame(settings=values).serialize(),
        st.dictionaries(
            st.integers(1, 9), st.sampled_from([0, 1, 100, 16_384, 65_535, 2**31]), max_size=3
        ),
    ),
    st.sampled_from(
        [
            SettingsFrame(flags=["ACK"]).serialize(),
            PingFrame(opaque_data=b"12345678").serialize(),
            GoAwayFrame(last_stream_id=1).serialize(),
            PriorityFrame(3, depends_on=1, stream_weight=1).serialize(),
            PriorityFrame(3, depends_on=3, stream_weight=1).serialize(),
            PushPromiseFrame(1, promised_stream_id=2, data=b"\x82").serialize(),
            ExtensionFrame(0xBE, 0, body=b"any").serialize(),
        ]
    ),
    st.binary(max_size=30),
    st.builds(
        lambda size, kind, flags, stream, data: (
            size.to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + data
        ),
        st.integers(0, 12),
        st.integers(0, 11),
        st.integers(0, 255),
        STREAMS,
        st.binary(max_size=12),
    ),
)


async def play(pieces: list[bytes], seconds: list[float], reads: list[bool]) -> None:
    """Send pieces in turn, with time between them; then end the connection."""
    app = App()
    peer, raised = Peer(app), list[Any]()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: raised.append(context))
    with captured_failures() as logs:
        peer.protocol.data_received(PREFACE)
        for number, piece in enumerate(pieces):
            peer.transport.reads = reads[number % len(reads)]
            if not peer.transport.closed:
                peer.protocol.data_received(piece)
            await turns(3)
            peer.clock.advance(seconds[number % len(seconds)])
        peer.transport.reads = True
        app.more.set()
        await turns(30)
        peer.transport.abort()
        await turns(60)

    assert raised == []
    assert logs == []
    assert peer.open_count == 0
    assert app.running == 0
    assert not peer.server_state.connections
    assert not peer.server_state.tasks
    assert not peer.protocol._is_monitored


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    pieces=st.lists(FRAMES, max_size=12),
    seconds=st.lists(st.sampled_from([0.0, 1.0, 4.0, 60.0]), min_size=1, max_size=4),
    reads=st.lists(st.booleans(), min_size=1, max_size=3),
)
def test_random_frames_raise_nothing_and_leave_nothing(pieces, seconds, reads):
    asyncio.run(play(pieces, seconds, reads))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(requests=st.lists(st.one_of(REQUESTS, FRAMES), max_size=20), cut=st.integers(1, 40))
def test_frames_may_arrive_in_any_pieces(requests, cut):
    data = b"".join(requests)
    pieces = [data[place : place + cut] for place in range(0, len(data), cut)]
    asyncio.run(play(pieces, [0.0], [True]))
