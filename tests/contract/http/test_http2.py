"""HTTP/2 on the service's own port, by prior knowledge."""

import json
import socket
import subprocess
from collections.abc import Iterator

import httpx
import pytest

from storage.domain import limits
from tests.debian import debian_program
from tests.http2_client import ErrorCodes, Http2Client, http2

JSON = [(b"content-type", b"application/json")]


@pytest.fixture
def path(client, name) -> bytes:
    """The path of a new queue."""
    client.put(f"/v1/queues/{name}", json={}).raise_for_status()
    return f"/v1/queues/{name}".encode()


@pytest.fixture
def connection(service_url) -> Iterator[Http2Client]:
    with http2(service_url) as opened:
        yield opened


def sized(body: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"content-length", b"%d" % len(body))]


def test_http2_and_http1_answer_alike(connection, client, path):
    """Both through the short way, a chunked request, and a route of FastAPI."""
    for method, where, body in (
        (b"POST", path + b"/messages", b"hello"),
        (b"GET", path, b""),
        (b"POST", path + b"/messages?delay_seconds=soon", b"hello"),
        (b"GET", b"/v1/queues/unknown-one", b""),
        (b"PUT", path, b"{}"),
    ):
        headers = [(b"x-request-id", b"one"), *sized(body)] if body else [(b"x-request-id", b"one")]
        two = connection.ask(method, where, headers, body=body or None)
        one = client.request(
            method.decode(), where.decode(), content=body, headers={"x-request-id": "one"}
        )

        assert two.status == one.status_code
        named = {name.encode(): value.encode() for name, value in one.headers.items()}
        own = {name: value for name, value in two.headers.items() if name != b":status"}
        assert named.keys() == own.keys()
        changing = {b"date", b"content-length", b"etag"}
        assert all(own[name] == named[name] for name in own.keys() - changing)
        if two.headers[b"content-type"].endswith(b"json"):
            assert json.loads(two.body).keys() == one.json().keys()


def test_responses_arrive_in_any_order(connection, path):
    waiting = connection.begin(b"POST", path + b"/receive", JSON, body=b'{"wait_seconds": 20}')
    sent = connection.ask(b"POST", path + b"/messages", body=b"hello")

    received = connection.answer(waiting)

    assert sent.status == 201
    [message] = json.loads(received.body)["messages"]
    assert message["body"] == "hello"


def test_head_has_no_body(connection, path):
    answer = connection.ask(b"HEAD", path)

    assert (answer.status, answer.body) == (200, b"")
    assert int(answer.headers[b"content-length"]) > 0


def test_hot_head_is_get_without_body(connection, client, name):
    client.put(f"/v1/streams/{name}", json={}).raise_for_status()
    answer = connection.ask(b"HEAD", f"/v1/streams/{name}/records".encode())

    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers[b"content-type"] == b"application/json"


@pytest.mark.parametrize("has_length", [True, False])
def test_largest_body_arrives_by_windows(connection, client, path, has_length):
    batch = json.dumps({"messages": [{"body": "x" * 200_000}] * 5}).encode()
    headers = [*JSON, *(sized(batch) if has_length else [])]
    answer = connection.ask(b"POST", path + b"/messages", headers, body=batch)

    assert answer.status == 201, answer.body


def test_body_beyond_limit_is_refused_unread(connection, path):
    length = (b"content-length", b"%d" % (limits.REQUEST_BYTES_MAX + 1))
    answer = connection.ask(b"POST", path + b"/messages", [length], ends=False)

    assert (answer.status, answer.reset) == (413, ErrorCodes.NO_ERROR)
    assert connection.ask(b"POST", path + b"/messages", body=b"next").status == 201


def test_reset_wait_takes_no_message(connection, client, path):
    waiting = connection.begin(b"POST", path + b"/receive", JSON, body=b'{"wait_seconds": 20}')
    connection.ask(b"POST", path + b"/receive", JSON, body=b"{}")  # now the other one waits
    connection.state.reset_stream(waiting, ErrorCodes.CANCEL)
    connection.ping()
    client.post(f"{path.decode()}/messages", json={"body": "hello"}).raise_for_status()

    received = connection.ask(b"POST", path + b"/receive", JSON, body=b"{}")

    [message] = json.loads(received.body)["messages"]
    assert (message["body"], message["receive_count"]) == ("hello", 1)


def test_lost_connection_takes_no_message(client, service_url, path):
    with http2(service_url) as lost:
        for _ in range(20):
            lost.begin(b"POST", path + b"/receive", JSON, body=b'{"wait_seconds": 20}')
        lost.ask(b"POST", path + b"/receive", JSON, body=b"{}")  # now the others wait
        lost.socket.shutdown(socket.SHUT_WR)
        lost.until_closed()
    with http2(service_url) as connection:
        connection.ask(b"POST", path + b"/messages", body=b"hello")
        received = connection.ask(b"POST", path + b"/receive", JSON, body=b'{"wait_seconds": 5}')

    [message] = json.loads(received.body)["messages"]
    assert (message["body"], message["receive_count"]) == ("hello", 1)


def test_feeds_share_a_connection_with_requests(connection, client, name):
    client.put(f"/v1/streams/{name}", json={}).raise_for_status()
    events = f"/v1/streams/{name}/events?follow=true".encode()
    feeds = [
        connection.begin(b"GET", events, [(b"accept", accept)])
        for accept in (b"text/event-stream", b"application/x-ndjson", b"text/event-stream")
    ]
    while not all(connection.answers[feed].headers for feed in feeds):
        connection.receive()
    record = json.dumps({"records": [{"data": "told", "key": "a"}]}).encode()

    sent = connection.ask(
        b"POST", f"/v1/streams/{name}/records".encode(), [*JSON, *sized(record)], body=record
    )
    while not all(b"told" in connection.answers[feed].body for feed in feeds):
        connection.receive()
    connection.state.reset_stream(feeds[0], ErrorCodes.CANCEL)
    connection.ping()

    assert sent.status == 200
    assert not any(connection.answers[feed].is_over for feed in feeds[1:])


def test_head_beyond_limit_is_refused_as_in_http1(connection, client):
    headers = {f"x-{number}": "1" for number in range(limits.HEAD_HEADERS_MAX + 1)}
    one = client.get("/livez", headers=headers)
    two = connection.ask(
        b"GET", b"/livez", [(name.encode(), value.encode()) for name, value in headers.items()]
    )

    assert two.status == one.status_code == 431
    assert {**json.loads(two.body), "request_id": ""} == {**one.json(), "request_id": ""}


def test_websockets_are_not_opened_by_http2(connection):
    assert not connection.state.remote_settings.enable_connect_protocol
    assert connection.ask(b"GET", b"/v1/ws").status == 426


def test_flood_ends_one_connection_only(connection, service_url):
    for _ in range(limits.HTTP2_IDLE_FRAMES_MAX + 100):
        connection.state.ping(b"flooding")

    assert connection.until_closed() == ErrorCodes.ENHANCE_YOUR_CALM
    with http2(service_url) as other:
        assert other.ask(b"GET", b"/livez").status == 200


@pytest.mark.parametrize("size", [10, 300_000])
def test_curl_speaks_http2(service_url, client, path, size, tmp_path):
    body = tmp_path / "body"
    body.write_text("x" * size)
    where = f"{service_url}{path.decode()}"
    curl = (debian_program("curl"), "--http2-prior-knowledge", "-sS", "-w", "\n%{http_version}")
    sent = subprocess.run(
        [*curl, f"{where}/messages", "--data-binary", f"@{body}", "-H", "content-type: text/plain"],
        capture_output=True,
        text=True,
        check=True,
    )
    received = subprocess.run(
        [*curl, "-X", "POST", f"{where}/receive"], capture_output=True, text=True, check=True
    )

    [message] = json.loads(received.stdout.splitlines()[0])["messages"]
    assert message["body"] == body.read_text()
    assert sent.stdout.endswith("\n2")


def test_httpx_speaks_http2(service_url, path):
    with httpx.Client(base_url=service_url, http1=False, http2=True) as client:
        sent = client.post(f"{path.decode()}/messages", content=b"hello")
        [message] = client.post(f"{path.decode()}/receive").json()["messages"]

    assert (sent.http_version, sent.status_code, message["body"]) == ("HTTP/2", 201, "hello")
