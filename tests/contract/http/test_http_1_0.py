"""Answers to clients of HTTP/1.0, which know no chunks: a length, or the end of the connection."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.contract.http.test_http import HOST, Wire

DOCUMENT = json.loads((Path(__file__).parents[3] / "openapi" / "openapi.json").read_text())
STREAMS = ("text/event-stream", "application/x-ndjson")
OTHER_PATHS = ("/", "/healthz", "/metrics", "/openapi.json", "/asyncapi.json", "/ui/login")
_PARAMETER = re.compile(r"\{(\w+)\}")
_NUMBERS = {"shard": "0", "offset": "0"}


def streaming_routes() -> Iterator[tuple[str, str]]:
    """Yield each GET path and media type that is answered piece by piece."""
    for path, methods in DOCUMENT["paths"].items():
        content = methods.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        if STREAMS[0] in content:  # every one of them can be NDJSON, too
            yield from ((path, kind) for kind in STREAMS)


def paths() -> list[str]:
    """Return every path with a GET whose answer ends by itself, without `follow=false`."""
    return [
        path
        for path, methods in DOCUMENT["paths"].items()
        if "get" in methods and not path.endswith("/events")
    ]


@pytest.fixture
def wire(service_url) -> Iterator[Wire]:
    with closing(Wire(service_url)) as opened:
        yield opened


@pytest.fixture
def stream(client: httpx.Client, name: str) -> str:
    client.put(f"/v1/streams/{name}", json={}).raise_for_status()
    client.post(f"/v1/streams/{name}/records", json={"data": "a record"}).raise_for_status()
    client.put(f"/v1/queues/{name}", json={}).raise_for_status()
    return name


def filled(path: str, name: str) -> str:
    return _PARAMETER.sub(lambda match: _NUMBERS.get(str(match[1]), name), path)


def exchange(wire: Wire, request: bytes) -> tuple[int, dict[bytes, bytes], bytes]:
    wire.send(request)
    status, headers, _ = wire.answer(has_body=False)
    return status, headers, wire.rest()


def get(path: str, accept: str = "*/*") -> bytes:
    return b"GET %b HTTP/1.0\r\n%baccept: %b\r\n\r\n" % (path.encode(), HOST, accept.encode())


@pytest.mark.parametrize("escaped", [False, True], ids=["direct", "asgi"])
@pytest.mark.parametrize(("path", "accept"), list(streaming_routes()))
def test_streaming_route_ends_with_connection(wire, stream, path, accept, escaped):
    """An escaped path is not matched directly: it takes the way through ASGI, which chunked."""
    shown = filled(path, stream)
    if escaped:
        shown = shown.replace("/v1/streams", "/v1/st%72eams", 1)
    query = "?follow=false&from=earliest" if path.endswith("events") else "?from=earliest"

    status, headers, body = exchange(wire, get(shown + query, accept))

    assert status == 200, body
    assert b"transfer-encoding" not in headers
    assert headers.get(b"content-length") in (None, b"%d" % len(body))
    assert body.splitlines()[0].startswith((b"{", b"retry:")), body
    assert b"a record" in body


@pytest.mark.parametrize("path", [*paths(), *OTHER_PATHS])
def test_answer_is_never_chunked(wire, stream, path):
    status, headers, body = exchange(wire, get(filled(path, stream)))

    assert b"transfer-encoding" not in headers, status
    assert headers.get(b"content-length") in (None, b"%d" % len(body))


@pytest.mark.parametrize("escaped", [False, True], ids=["direct", "asgi"])
def test_head_of_stream_has_no_body(wire, stream, escaped):
    path = f"/v1/{'st%72eams' if escaped else 'streams'}/{stream}/events?follow=false"
    request = get(path, STREAMS[0]).replace(b"GET", b"HEAD", 1)

    status, headers, body = exchange(wire, request)

    assert (status, body) == (200, b"")
    assert b"transfer-encoding" not in headers
