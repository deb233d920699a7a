"""Requests and responses of the in-memory service, in JSON and in MessagePack."""

import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import httpx
import msgspec

from millstream_client.bodies import JSON, MSGPACK

CONTENT = ("body", "data")
"""Fields with bytes: a message's body and a record's data."""


@dataclass(frozen=True)
class Request:
    """A request. `words` are the segments of its path below /v1."""

    method: str
    words: tuple[str, ...]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: dict[str, Any]
    content: bytes


@dataclass(frozen=True)
class Result:
    """Body and status of a response.

    `wait_s`: how long the caller waits for one that is not empty.
    """

    body: dict[str, Any] | None
    status: int = 200
    wait_s: float = field(default=0.0)


def read_request(request: httpx.Request) -> Request:
    """Return the request in its own terms."""
    path = request.url.raw_path.decode().partition("?")[0]
    words = tuple(unquote(word) for word in path.removeprefix("/v1").split("/") if word)
    return Request(
        request.method,
        words,
        dict(request.url.params),
        request.headers,
        _body(request),
        request.content,
    )


def _body(request: httpx.Request) -> dict[str, Any]:
    content_type = request.headers.get("content-type", "")
    if not request.content:
        return {}
    if content_type == MSGPACK:
        fields: dict[str, Any] = msgspec.msgpack.decode(request.content)
        return fields
    fields = msgspec.json.decode(request.content)
    for name in ("messages", "records"):
        items = fields.get(name)
        if isinstance(items, list) and all(isinstance(item, dict) for item in items):
            fields[name] = [_with_bytes(item) for item in items]
    for settlement in fields.get("settlements", ()):
        if settlement.get("reply"):
            settlement["reply"] = _with_bytes(settlement["reply"])
    return _with_bytes(fields)


def _with_bytes(item: dict[str, Any]) -> dict[str, Any]:
    """Return a message or record of JSON with its content as bytes."""
    item = dict(item)
    for name in CONTENT:
        if f"{name}_base64" in item:
            item[name] = base64.b64decode(item.pop(f"{name}_base64"))
        elif isinstance(item.get(name), str):
            item[name] = item[name].encode()
        elif name in item:
            item[name] = msgspec.json.encode(item[name])
            item["content_type"] = item.get("content_type") or JSON
    return item


def encode(request: Request, result: Result) -> httpx.Response:
    """Return the response to a request."""
    headers = {"x-request-id": uuid.uuid4().hex[:20]}
    if result.body is None:
        return httpx.Response(result.status, headers=headers)
    if result.status >= 400:
        problem = {**result.body, "request_id": headers["x-request-id"]}
        headers["content-type"] = "application/problem+json"
        return httpx.Response(result.status, headers=headers, content=msgspec.json.encode(problem))
    if MSGPACK in request.headers.get("accept", ""):
        headers["content-type"] = MSGPACK
        content = msgspec.msgpack.encode(result.body)
        return httpx.Response(result.status, headers=headers, content=content)
    headers["content-type"] = JSON
    content = msgspec.json.encode(_with_text(result.body))
    return httpx.Response(result.status, headers=headers, content=content)


def _with_text(node: Any) -> Any:
    """Return a value whose bytes are in their JSON form."""
    if isinstance(node, list):
        return [_with_text(item) for item in node]
    if not isinstance(node, dict):
        return node
    shown: dict[str, Any] = {}
    for name, value in node.items():
        if isinstance(value, bytes):
            shown |= _content(name, value, node.get("content_type", ""))
        else:
            shown[name] = _with_text(value)
    return shown


def _content(name: str, value: bytes, content_type: str) -> dict[str, Any]:
    try:
        text = value.decode()
        return {name: msgspec.json.decode(value) if content_type == JSON else text}
    except (UnicodeDecodeError, msgspec.DecodeError):
        return {f"{name}_base64": base64.b64encode(value).decode()}
