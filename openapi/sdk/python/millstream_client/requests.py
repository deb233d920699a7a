"""Requests and replies in MessagePack, where bodies are their bytes."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from millstream_client.bodies import encode_body
from millstream_client.calls import IDEMPOTENCY_KEY, Call
from millstream_client.errors import NoReply
from millstream_client.messages import PACKED, Body, path, reading

WAIT_SECONDS = 20.0
"""Longest wait of one call."""

_encode = msgspec.msgpack.Encoder().encode


class Reply(Body, msgspec.Struct, kw_only=True):
    """A reply to a request."""

    body: bytes
    content_type: str = ""
    headers: dict[str, str] = {}
    at: datetime


class Replies(msgspec.Struct, kw_only=True):
    """Replies to a request so far; if `complete`, all that it will have."""

    request: str
    replies: list[Reply]
    complete: bool


_read_replies = reading(Replies)


def send_request(
    queue: str, body: Any, timeout_seconds: float, idempotency_key: str, /, **fields: Any
) -> Call[Replies]:
    """Send a request to a queue, and wait for its reply."""
    content, wait_seconds = _content(body, timeout_seconds, fields)
    return Call(
        "send_request",
        "POST",
        path("queues", queue, "requests"),
        _read_replies,
        headers={**PACKED, IDEMPOTENCY_KEY: idempotency_key},
        content=content,
        wait_s=wait_seconds,
    )


def publish_request(
    topic: str, body: Any, timeout_seconds: float, idempotency_key: str, /, **fields: Any
) -> Call[Replies]:
    """Publish a request to a topic, and wait for its replies."""
    content, wait_seconds = _content(body, timeout_seconds, fields)
    return Call(
        "publish_request",
        "POST",
        path("topics", topic, "requests"),
        _read_replies,
        headers={**PACKED, IDEMPOTENCY_KEY: idempotency_key},
        content=content,
        wait_s=wait_seconds,
    )


def get_replies(request: str) -> Call[Replies]:
    """Wait for the replies to a request."""
    return Call(
        "get_reply",
        "GET",
        path("requests", request, "reply"),
        _read_replies,
        headers=PACKED,
        params={"wait_seconds": WAIT_SECONDS},
        wait_s=WAIT_SECONDS,
    )


def send_reply(
    request: str, body: Any, headers: dict[str, str] | None, content_type: str, key: str
) -> Call[None]:
    """Reply to a request."""
    data, content_type = encode_body(body, content_type)
    reply = {"body": data, "headers": headers or {}, "content_type": content_type}
    return Call(
        "send_reply",
        "POST",
        path("requests", request, "replies"),
        lambda response: None,
        headers={**PACKED, IDEMPOTENCY_KEY: key},
        content=_encode(reply),
    )


def first(replies: Sequence[Reply]) -> Reply:
    """Return the first reply. Raises NoReply."""
    if not replies:
        raise NoReply("No reply arrived before the deadline.")
    return replies[0]


def _content(body: Any, timeout_seconds: float, fields: dict[str, Any]) -> tuple[bytes, float]:
    """Return the body of a call that sends a request, and how long the call waits."""
    data, content_type = encode_body(body, fields.pop("content_type"))
    wait_seconds = min(timeout_seconds, WAIT_SECONDS)
    request = {
        "body": data,
        "content_type": content_type,
        "timeout_seconds": timeout_seconds,
        "wait_seconds": wait_seconds,
        **{name: value for name, value in fields.items() if value},
    }
    return _encode(request), wait_seconds
