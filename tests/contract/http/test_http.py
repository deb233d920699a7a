"""HTTP byte by byte: both paths through the server give the same response.

Hot requests take a short path (api/server/http_protocol.py); unusual requests take the long one.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from storage.domain import limits
from tests.conditions import PATIENCE_S

PATH = "/v1/queues/wire/messages"
HOST = b"host: localhost\r\n"
Answer = tuple[int, dict[bytes, bytes], bytes]


class Wire:
    """A connection that sends and receives raw bytes."""

    def __init__(self, url: str) -> None:
        where = urlsplit(url)
        self._socket = socket.create_connection(
            (where.hostname, where.port or 0), timeout=PATIENCE_S
        )
        self._read = self._socket.makefile("rb")

    def close(self) -> None:
        self._read.close()
        self._socket.close()

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self._socket.sendall(piece)

    def answer(self, *, has_body: bool = True) -> Answer:
        """Read the status, headers and body of the next response."""
        status = int(self._read.readline().split()[1])
        headers = {}
        while line := self._read.readline().strip():
            name, _, value = line.partition(b": ")
            headers[name] = value
        length = int(headers.get(b"content-length", 0)) if has_body else 0
        return status, headers, self._read.read(length)

    def rest(self) -> bytes:
        """Read until the server closes."""
        return self._read.read()

    def is_closed(self) -> bool:
        """Return whether the server has closed without sending more."""
        return self._read.read(1) == b""


@pytest.fixture
def wire(client, service_url) -> Iterator[Wire]:
    client.put("/v1/queues/wire", json={})
    with closing(Wire(service_url)) as opened:
        yield opened


def post(
    body: bytes, *headers: bytes, version: bytes = b"1.1", path: bytes = PATH.encode()
) -> bytes:
    lines = b"".join(header + b"\r\n" for header in headers)
    length = b"content-length: %d\r\n" % len(body)
    return b"POST %b HTTP/%b\r\n%b%b%b\r\n%b" % (path, version, HOST, length, lines, body)


def chunked(*chunks: bytes) -> bytes:
    pieces = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    head = b"POST %b HTTP/1.1\r\n%btransfer-encoding: chunked\r\n\r\n" % (PATH.encode(), HOST)
    return head + pieces + b"0\r\n\r\n"


def test_both_http_paths_answer_alike(wire):
    wire.send(post(b"short way", b"x-request-id: one"))
    short = wire.answer()
    wire.send(chunked(b"long ", b"way").replace(HOST, HOST + b"x-request-id: one\r\n", 1))
    long = wire.answer()

    assert short[0] == long[0] == 201
    assert short[1].keys() == long[1].keys() >= {b"date", b"content-type", b"x-request-id"}
    assert {**short[1], b"date": b""} == {**long[1], b"date": b""}
    assert json.loads(short[2]).keys() == json.loads(long[2]).keys()


def test_both_http_paths_reject_alike(wire):
    body, kind = b'{"body": "a", "delay_seconds": "soon"}', b"content-type: application/json"
    wire.send(post(body, kind, b"x-request-id: one"))
    short = wire.answer()
    escaped = PATH.replace("wire", "w%69re").encode()
    wire.send(post(body, kind, b"x-request-id: one", path=escaped))
    long = wire.answer()

    assert short[0] == 422
    assert short[2] == long[2]


def test_pipelined_requests_are_answered_in_order(wire):
    bodies = [b"first", b"second", b"third"]
    wire.send(b"".join(post(body, b"x-request-id: " + body) for body in bodies))

    answers = [wire.answer() for _ in bodies]

    assert [status for status, _, _ in answers] == [201] * 3
    assert [headers[b"x-request-id"] for _, headers, _ in answers] == bodies
    offsets = [json.loads(body)["offset"] for _, _, body in answers]
    assert offsets == sorted(offsets)


def test_request_can_arrive_byte_by_byte(wire):
    whole = post(b"in pieces")
    wire.send(*(whole[place : place + 1] for place in range(len(whole))))

    assert wire.answer()[0] == 201


@pytest.mark.parametrize(
    ("request_bytes", "closes"),
    [
        (post(b"last", b"connection: close"), True),
        (post(b"old", version=b"1.0"), True),
        (post(b"next", b"connection: keep-alive"), False),
    ],
    ids=["close", "HTTP/1.0", "keep-alive"],
)
def test_connection_persists_or_closes_as_requested(wire, request_bytes, closes):
    wire.send(request_bytes)
    status, headers, _ = wire.answer()

    assert status == 201
    assert (headers.get(b"connection") == b"close") is closes
    if closes:
        assert wire.is_closed()
    else:
        wire.send(post(b"again"))
        assert wire.answer()[0] == 201


@pytest.mark.parametrize("accept", [b"application/x-ndjson", b"text/event-stream"])
def test_stream_to_http_1_0_client_ends_with_connection(wire, client, name, accept):
    """Chunks reached clients of HTTP/1.0, as which nginx spoke to its upstream, as part of the data."""
    client.put(f"/v1/streams/{name}", json={})
    client.post(f"/v1/streams/{name}/records", json={"data": "a record"})
    path = f"/v1/streams/{name}/events?follow=false&from=earliest".encode()
    wire.send(b"GET %b HTTP/1.0\r\n%baccept: %b\r\n\r\n" % (path, HOST, accept))

    status, headers, _ = wire.answer(has_body=False)
    body = wire.rest()

    assert (status, headers.get(b"transfer-encoding")) == (200, None)
    assert headers[b"connection"] == b"close"
    first = body.splitlines()[0]
    assert first.startswith((b"{", b"retry:")), first
    assert b"a record" in body


def test_expect_100_continue_is_answered(wire):
    head, _, body = post(b"large", b"expect: 100-continue").partition(b"\r\n\r\n")
    wire.send(head + b"\r\n\r\n")
    told = wire.answer()[0]
    wire.send(body)

    assert told == 100
    assert wire.answer()[0] == 201


def test_body_announced_as_too_large_is_rejected_unread(wire):
    length = b"content-length: %d\r\n" % (limits.REQUEST_BYTES_MAX + 1)
    wire.send(b"POST %b HTTP/1.1\r\n%b%b\r\n" % (PATH.encode(), HOST, length))

    assert wire.answer()[0] == 413


def test_post_without_body_is_valid(wire):
    wire.send(b"POST /v1/queues/wire/receive HTTP/1.1\r\n%b\r\n" % HOST)

    assert wire.answer()[0] == 200


def test_head_is_get_without_body(wire, client):
    client.put("/v1/streams/wire", json={})
    wire.send(b"HEAD /v1/streams/wire/records HTTP/1.1\r\n%b\r\n" % HOST)
    wire.send(post(b"next"))

    status, headers, _ = wire.answer(has_body=False)
    assert (status, headers[b"content-type"]) == (200, b"application/json")
    assert wire.answer()[0] == 201


def test_cold_and_hot_requests_share_connection(wire):
    wire.send(b"GET /v1/queues/wire HTTP/1.1\r\n%b\r\n" % HOST + post(b"hot"))

    assert [wire.answer()[0], wire.answer()[0]] == [200, 201]


def test_malformed_request_returns_400(wire):
    wire.send(b"EHLO there\r\n\r\n")

    assert wire.answer()[0] == 400


def test_browser_at_root_is_redirected_to_dashboard(client):
    looking = client.get("/", headers={"accept": "text/html,application/xhtml+xml"})
    program = client.get("/")

    assert (looking.status_code, looking.headers["location"]) == (307, "/ui")
    assert program.status_code == 404
    assert (
        "the API is at /v1, described by /openapi.json and tried at /docs; the dashboard is at /ui"
        in program.json()["detail"]
    )
