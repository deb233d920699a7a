"""Refusals by the HTTP server, as AWS clients can read them, and requests without Host."""

import json
import socket
import xml.etree.ElementTree as ET
from urllib.parse import urlsplit

import pytest

from storage.domain import limits
from tests.conditions import PATIENCE_S

LONG = "x" * limits.URL_BYTES_MAX


def exchange(service_url, request):
    """Send a request, and return its status, its headers and its body."""
    where = urlsplit(service_url)
    with socket.create_connection((where.hostname, where.port), timeout=PATIENCE_S) as client:
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    return int(status.split()[1]), dict(line.split(": ", 1) for line in lines), body


@pytest.mark.parametrize(
    "target",
    [
        f"/?Action=SendMessage&MessageBody={LONG}",
        f"/?Version=2012-11-05&Action=SendMessage&MessageBody={LONG}",
        f"/123456789012/orders?Action=SendMessage&MessageBody={LONG}",
        f"/123456789012/{LONG}",
    ],
)
def test_long_url_of_query_call_is_rejected_in_xml(service_url, target):
    """The answer was a problem document, which SDKs cannot parse."""
    request = f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    status, headers, body = exchange(service_url, request)

    root = ET.fromstring(body)
    assert status == 413
    assert headers["content-type"] == "text/xml"
    assert root.findtext(".//{*}Code") == "RequestEntityTooLarge"
    assert root.findtext(".//{*}RequestId") == headers["x-amzn-requestid"]


@pytest.mark.parametrize(
    ("head", "status", "shape"),
    [
        (f"X-Filler: {'x' * limits.HEAD_BYTES_MAX}\r\n\r\n", 413, "RequestEntityTooLargeException"),
        ("X-Amz-Date: \x01\x00\r\n\r\n", 400, "MalformedHttpRequestException"),
    ],
)
@pytest.mark.parametrize("target", ["AmazonSQS.ListQueues", "Kinesis_20131202.ListStreams"])
def test_refusal_of_json_call_names_its_type(service_url, target, head, status, shape):
    request = f"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: {target}\r\n{head}".encode()
    answer = exchange(service_url, request)

    assert answer[0] == status
    assert json.loads(answer[2])["__type"].endswith(f"#{shape}")
    assert answer[1]["x-amzn-errortype"] == shape


def test_refusal_of_other_call_stays_a_problem(service_url):
    request = f"GET /v1/queues?prefix={LONG} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    status, headers, _ = exchange(service_url, request)

    assert (status, headers["content-type"]) == (414, "application/problem+json")


@pytest.mark.parametrize(("version", "is_chunked"), [("1.0", False), ("1.1", False), ("1.1", True)])
def test_queue_url_has_port_without_host(service_url, name, version, is_chunked):
    """The URL of a client without Host led to port 80."""
    body = json.dumps({"QueueName": name}).encode()
    headers = "X-Amz-Target: AmazonSQS.CreateQueue\r\n"
    if is_chunked:
        headers += "Transfer-Encoding: chunked\r\n"
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    else:
        headers += f"Content-Length: {len(body)}\r\n"
    status, _, answer = exchange(
        service_url, f"POST / HTTP/{version}\r\n{headers}\r\n".encode() + body
    )

    where, url = urlsplit(service_url), urlsplit(json.loads(answer)["QueueUrl"])
    assert status == 200
    assert (url.hostname, url.port) == (where.hostname, where.port)
