"""Clients that close their side of the connection after the request, as `socat` and `nc -N` do."""

import json
import socket
from urllib.parse import urlsplit

import pytest

from tests.conditions import PATIENCE_S


@pytest.fixture
def url(service_url, client, name):
    """The URL of a new queue."""
    client.put(f"/v1/queues/{name}", json={}).raise_for_status()
    return f"{service_url}/123456789012/{name}"


SQS_SEND = "X-Amz-Target: AmazonSQS.SendMessage\r\n"


def exchange(service_url, *requests):
    """Send the requests, close the sending side, and return all that arrives."""
    where = urlsplit(service_url)
    with socket.create_connection((where.hostname, where.port), timeout=PATIENCE_S) as client:
        client.sendall(b"".join(requests))
        client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(65536), b""))


def request(method, path, body="", headers="", version="1.1"):
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    kind = "" if "Content-Type" in headers else "Content-Type: application/json\r\n"
    host = "Host: localhost\r\n" if version == "1.1" else ""
    head = f"{method} {path} HTTP/{version}\r\n{host}{kind if body else ''}{headers}{length}\r\n"
    return f"{head}{body}".encode()


def sends(url, queue):
    form = f"Action=SendMessage&MessageBody=x&QueueUrl={url}"
    as_form = "Content-Type: application/x-www-form-urlencoded\r\n"
    message = json.dumps({"body": "x"})
    chunk = f"{len(message):x}\r\n{message}\r\n0\r\n\r\n".encode()
    native = f"/v1/queues/{queue}/messages"
    in_json = json.dumps({"QueueUrl": url, "MessageBody": "x"})
    return {
        "native": request("POST", native, message),
        "chunked": request("POST", native, headers="Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n") + chunk,
        "cross origin": request("POST", native, message, "Origin: http://localhost\r\n"),
        "sqs": request("POST", "/", in_json, SQS_SEND),
        "query": request("POST", "/", form, as_form),
        "http 1.0": request("POST", native, message, version="1.0"),
    }  # fmt: skip


KINDS = list(sends("", ""))


@pytest.mark.parametrize("kind", KINDS)
def test_send_of_half_closed_client_is_answered(service_url, client, url, kind):
    """The message was added, and the client was not told so."""
    queue = url.rpartition("/")[2]
    answer = exchange(service_url, sends(url, queue)[kind])

    assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")), answer
    assert client.get(f"/v1/queues/{queue}/stats").json()["ready"] == 1


def test_configuration_by_half_closed_client_is_answered(service_url, client, name):
    answer = exchange(service_url, request("PUT", f"/v1/queues/{name}", "{}"))

    assert answer.startswith(b"HTTP/1.1 201"), answer
    assert client.get(f"/v1/queues/{name}").status_code == 200


def test_pipelined_requests_of_half_closed_client_are_answered(service_url, client, url):
    queue = url.rpartition("/")[2]
    send = sends(url, queue)["native"]
    answer = exchange(service_url, send, send, request("GET", f"/v1/queues/{queue}"), send)

    assert answer.count(b"HTTP/1.1 201") == 3
    assert answer.count(b"HTTP/1.1 200") == 1
    assert client.get(f"/v1/queues/{queue}/stats").json()["ready"] == 3


@pytest.mark.parametrize("wait", [0, 1])
@pytest.mark.parametrize("is_native", [True, False])
def test_half_closed_client_receives_nothing(service_url, client, url, wait, is_native):
    """Such a client may have gone, and then its messages must stay ready."""
    queue = url.rpartition("/")[2]
    client.post(f"/v1/queues/{queue}/messages", json={"body": "x"}).raise_for_status()
    if is_native:
        receive = request("POST", f"/v1/queues/{queue}/receive", json.dumps({"wait_seconds": wait}))
    else:
        body = json.dumps({"QueueUrl": url, "WaitTimeSeconds": wait})
        receive = request("POST", "/", body, "X-Amz-Target: AmazonSQS.ReceiveMessage\r\n")

    answer = exchange(service_url, receive)

    if answer.startswith(b"HTTP/1.1 400"):
        assert b"keep the connection open" in answer
        assert client.get(f"/v1/queues/{queue}/stats").json()["ready"] == 1
    else:  # it was answered before the end of the client's side arrived
        assert answer.startswith(b"HTTP/1.1 200")


def test_stream_of_half_closed_client_ends(service_url, client, name):
    client.put(f"/v1/streams/{name}", json={"shards": 1}).raise_for_status()

    answer = exchange(service_url, request("GET", f"/v1/streams/{name}/events"))

    assert answer.count(b"HTTP/1.1") <= 1


def test_incomplete_request_of_half_closed_client_is_dropped(service_url):
    assert exchange(service_url, b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Le") == b""
