"""Requests and responses of HTTP/2, as RFC 9113 has them."""

import asyncio
import itertools
from typing import Any

import pytest
from h2.errors import ErrorCodes
from hyperframe.frame import DataFrame, GoAwayFrame, WindowUpdateFrame

from storage.domain import limits
from tests.http2_client import Answer
from tests.unit.http2.peer import captured_failures, respond, turns


async def test_scope_is_of_http_2(peer, app):
    await peer.ask(b"/empty?a=%20b", [(b"x-one", b"1")], method=b"PUT")

    [scope] = app.scopes
    assert (scope["http_version"], scope["method"], scope["scheme"]) == ("2", "PUT", "http")
    assert (scope["path"], scope["query_string"]) == ("/empty", b"a=%20b")
    assert scope["headers"] == [(b"x-one", b"1"), (b"host", b"localhost")]


async def test_cookie_crumbs_are_joined(peer, app):
    await peer.ask(b"/", [(b"cookie", b"a=1"), (b"x", b"y"), (b"cookie", b"b=2")])

    assert dict(app.scopes[0]["headers"])[b"cookie"] == b"a=1; b=2"


async def test_body_is_echoed_and_large_one_read_by_windows(peer):
    small = await peer.ask(b"/echo", method=b"POST", body=b"hello")
    stream_id = peer.begin(b"/echo", method=b"POST", ends=False)
    left = b"".join(b"%07d\n" % number for number in range(100_000))
    whole = left
    while left:
        size = min(peer.client.local_flow_control_window(stream_id), 16_384, len(left))
        if size:
            peer.client.send_data(stream_id, left[:size], end_stream=size == len(left))
            left = left[size:]
        else:
            await peer.exchange()
    await peer.exchange()

    assert small.body == b"hello"
    assert (peer.answers[stream_id].body, peer.answers[stream_id].has_ended) == (whole, True)


async def test_head_and_204_have_no_body(peer):
    head = await peer.ask(b"/big?10", method=b"HEAD")
    nothing = await peer.ask(b"/nothing")

    assert (head.headers[b"content-length"], head.body, head.has_ended) == (b"10", b"", True)
    assert (nothing.status, nothing.body, nothing.has_ended) == (204, b"", True)


async def test_connection_fields_are_not_sent(peer):
    answer = await peer.ask(b"/connects")

    assert answer.headers.keys() == {b":status", b"date", b"x-own"}
    assert answer.body == b"one"


async def test_failing_application_fails_its_stream_alone(peer):
    with captured_failures() as logs:
        whole, late, short = [await peer.ask(path) for path in (b"/fail", b"/fail_late", b"/short")]

    assert (whole.status, whole.body) == (500, b"Internal Server Error")
    assert (late.status, late.reset) == (200, ErrorCodes.INTERNAL_ERROR)
    assert short.reset == ErrorCodes.INTERNAL_ERROR
    assert [log["operation"] for log in logs] == ["/fail", "/fail_late", "/short"]
    assert (await peer.ask(b"/")).status == 200


async def test_continue_is_sent_when_the_body_is_read(peer):
    stream_id = peer.begin(b"/echo", [(b"expect", b"100-continue")], method=b"POST", ends=False)
    await peer.exchange()
    informed = peer.answers[stream_id].informational
    peer.client.send_data(stream_id, b"body", end_stream=True)
    await peer.exchange()

    assert informed == [100]
    assert peer.answers[stream_id].body == b"body"


async def test_trailers_end_a_request(peer):
    stream_id = peer.begin(b"/echo", method=b"POST", body=b"body", ends=False)
    peer.client.send_headers(stream_id, [(b"checksum", b"1")], end_stream=True)
    await peer.exchange()

    assert peer.answers[stream_id].body == b"body"


async def test_early_response_asks_the_client_to_stop(peer):
    stream_id = peer.begin(b"/refuse", method=b"POST", body=b"begun", ends=False)
    await peer.exchange()

    answer = peer.answers[stream_id]
    assert (answer.status, answer.body, answer.reset) == (413, b"no", ErrorCodes.NO_ERROR)
    assert peer.error is None


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        (b"GET", b"/a#b", 400),
        (b"GET", b"relative", 400),
        (b"GET", b"*", 400),
        (b"GET", "/ü".encode(), 400),
        (b"G T", b"/", 400),
        (b"GET", b"/" + b"a" * limits.URL_BYTES_MAX, 414),
    ],
)
async def test_invalid_request_line_is_refused(peer, app, method, path, status):
    answer = await peer.ask(path, method=method)

    assert answer.status == status
    assert app.scopes == []


async def test_tunnel_is_refused(peer):
    stream_id = peer.client.get_next_available_stream_id()
    peer.answers[stream_id] = Answer()
    peer.client.send_headers(
        stream_id, [(b":method", b"CONNECT"), (b":authority", b"localhost:1")], end_stream=True
    )
    await peer.exchange()

    assert peer.answers[stream_id].status == 405


@pytest.mark.parametrize(
    "fields",
    [
        [(b"connection", b"close")],
        [(b"transfer-encoding", b"chunked")],
        [(b"te", b"gzip")],
        [(b"Upper", b"case")],
        [(b"host", b"another.example")],
        [(b":path", b"/again")],
        [(b"a", b"b\r\nc: d")],
        [(b"content-length", b"1"), (b"content-length", b"2")],
        [(b"content-length", b"-1")],
        [(b"", b"no name")],
    ],
)
async def test_malformed_request_is_a_protocol_error(peer, app, fields):
    await peer.ask(b"/", fields)

    assert peer.error == ErrorCodes.PROTOCOL_ERROR
    assert peer.transport.closed
    assert app.scopes == []


@pytest.mark.parametrize("body", [b"ab", b"abcd"])
async def test_body_unlike_its_length_is_a_protocol_error(peer, body):
    await peer.ask(b"/echo", [(b"content-length", b"3")], method=b"POST", body=body)

    assert peer.error == ErrorCodes.PROTOCOL_ERROR


async def test_missing_body_resets_the_stream(peer, app):
    answer = await peer.ask(b"/echo", [(b"content-length", b"3")], method=b"POST")

    assert answer.reset == ErrorCodes.PROTOCOL_ERROR
    assert app.scopes == []
    assert (await peer.ask(b"/")).status == 200


async def test_reset_is_a_disconnect(peer, app):
    stream_id = peer.begin(b"/watch")
    await peer.exchange()
    peer.client.reset_stream(stream_id, ErrorCodes.CANCEL)
    await peer.exchange()

    assert app.received[-1] == {"type": "http.disconnect"}
    assert peer.open_count == 0


async def test_lost_connection_is_a_disconnect(peer, app):
    peer.begin(b"/watch")
    await peer.exchange()
    peer.transport.close()
    await peer.exchange()

    assert app.received[-1] == {"type": "http.disconnect"}


async def test_responses_of_one_turn_are_one_write(peer, app):
    waiting = [peer.begin(b"/wait") for _ in range(10)]
    await peer.exchange()
    peer.transport.writes.clear()
    app.more.set()
    await peer.exchange()

    assert len(peer.transport.writes) == 1
    assert [peer.answers[stream_id].body for stream_id in waiting] == [b"waited"] * 10


async def test_large_responses_share_the_connection(peer):
    peer.opens_windows = False
    peer.client.increment_flow_control_window(2**20)
    peer.client.update_settings({4: 2**20})
    await peer.exchange()
    first, second = [peer.begin(b"/big?500000") for _ in range(2)]
    order: list[int] = []
    peer.send()
    while not peer.answers[second].has_ended:
        await asyncio.sleep(0)
        order += [event.stream_id for event in peer.read() if hasattr(event, "data")]

    changes = sum(one != next_one for one, next_one in itertools.pairwise(order))
    assert set(order) == {first, second}
    assert changes >= 10


async def test_response_waits_for_both_windows(peer):
    peer.opens_windows = False
    stream_id = peer.begin(b"/big?100000")
    await peer.exchange()
    answer = peer.answers[stream_id]
    at_first = len(answer.body)
    peer.client.increment_flow_control_window(100_000, stream_id)
    await peer.exchange()
    by_stream = len(answer.body)
    peer.client.increment_flow_control_window(100_000)
    await peer.exchange()

    assert (at_first, by_stream, len(answer.body)) == (65_535, 65_535, 100_000)
    assert answer.has_ended


async def test_client_that_says_goodbye_gets_its_responses(peer, app):
    """Node's client sends GOAWAY when it is told to close, and waits for its responses."""
    stream_id = peer.begin(b"/wait")
    await peer.exchange()
    peer.send(GoAwayFrame(last_stream_id=0), WindowUpdateFrame(0, window_increment=10))
    await peer.exchange()
    app.more.set()
    await peer.exchange()

    assert peer.answers[stream_id].body == b"waited"
    assert peer.transport.closed


async def test_shutdown_finishes_open_requests_and_refuses_new_ones(peer, app):
    before = peer.begin(b"/wait")
    await peer.exchange()
    peer.protocol.shutdown()
    late = peer.begin(b"/")  # sent before the client has read GOAWAY
    await peer.exchange()
    still_open = not peer.transport.closed
    app.more.set()
    await peer.exchange()

    assert still_open
    assert peer.goaway is not None
    assert (peer.error, peer.goaway.last_stream_id) == (ErrorCodes.NO_ERROR, before)
    assert peer.answers[before].body == b"waited"
    assert peer.answers[late].reset == ErrorCodes.REFUSED_STREAM
    assert peer.transport.closed
    assert len(app.scopes) == 1


async def test_idle_connection_is_closed_at_shutdown(peer):
    peer.protocol.shutdown()
    await peer.exchange()

    assert peer.error == ErrorCodes.NO_ERROR
    assert peer.transport.closed


async def test_data_on_a_reset_stream_is_given_back(peer):
    """Its bytes would be missing from the connection's window."""
    before = peer.client.outbound_flow_control_window
    for _ in range(200):
        stream_id = peer.begin(b"/refuse", method=b"POST", ends=False)
        await peer.exchange(3)
        peer.send(DataFrame(stream_id, b"x" * 16_000))
        peer.client.outbound_flow_control_window -= 16_000
        await peer.exchange(3)

    assert peer.client.outbound_flow_control_window > before // 3


async def test_nothing_is_sent_on_a_connection_that_is_being_closed(peer, app):
    """Its last frames may wait for the client; a response that is ready meanwhile is dropped."""
    peer.begin(b"/wait")
    await peer.exchange()
    peer.transport.reads = False
    peer.send(DataFrame(99, b""))
    closed, written = peer.transport.closed, bytes(peer.transport.buffer)
    with captured_failures() as logs:
        app.more.set()
        await turns()

    assert closed
    assert peer.transport.buffer == written
    assert logs == []


async def test_finished_response_is_a_disconnect(peer, app):
    """An application may wait for the end in a task, as with uvicorn."""

    async def answer(_: Any, receive: Any, send: Any) -> None:
        waiting = asyncio.create_task(receive())
        app.received.append(await waiting)
        waiting = asyncio.create_task(receive())
        await asyncio.sleep(0)
        await respond(send, b"answer")
        app.received.append(await waiting)

    app.empty = answer
    await peer.ask(b"/")

    assert [message["type"] for message in app.received] == ["http.request", "http.disconnect"]
    assert peer.open_count == 0
