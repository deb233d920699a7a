"""Rendering of an event as headers and body of a request.

    body        the payload as it is; everything else goes in `millstream-…` headers
    envelope    {"type": "queue.message", "timestamp": …, "data": {everything}}, as Standard Webhooks suggests

In headers, all characters except visible ASCII are percent-encoded, and so is the percent sign.
"""

import re
import secrets
from typing import Any
from urllib.parse import quote_from_bytes

import msgspec

from storage.domain.clock import rfc3339
from storage.domain.log.json_content import JSON, body_members, header_members
from storage.domain.log.record_batch import RESERVED, Headers
from storage.domain.trace_context import TRACEPARENT, TRACESTATE, parts_of
from storage.domain.webhooks import BodyFormat, Event

OCTETS = "application/octet-stream"
_VISIBLE = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")
_NAME_MARKS = "!#$&'*+-.^_`|~"
_CONTENT_TYPE = re.compile(r"[\x21-\x7e]([\x20-\x7e]{0,200}[\x21-\x7e])?")

Rendered = tuple[list[tuple[str, str]], bytes]
"""Headers and body."""


def render(
    event: Event, form: BodyFormat, webhook: str, attempt: int, context: bytes = b""
) -> Rendered:
    """Render the request of an event, without the signature's headers.

    `context`: of the span that it belongs to.
    """
    headers = [
        ("millstream-webhook", webhook),
        ("millstream-event", event.kind),
        ("millstream-source", event.source),
        ("millstream-attempt", str(attempt)),
        *_trace(event.headers, context),
    ]
    if form is BodyFormat.ENVELOPE:
        return [("content-type", JSON), *headers], msgspec.json.encode(envelope(event))
    given = event.content_type
    content_type = given if _CONTENT_TYPE.fullmatch(given) else OCTETS
    rendered = [("content-type", content_type), *headers, *_facts(event), *_own(event.headers)]
    return rendered, event.payload


def envelope(event: Event) -> dict[str, Any]:
    """Render an event as JSON.

    A payload is text, a JSON value, or base64, whichever represents it exactly.
    """
    facts = {
        name.removeprefix("millstream-").replace("-", "_"): _plain(event, name) for name in _FACTS
    }
    data: dict[str, Any] = {name: value for name, value in facts.items() if value not in (None, "")}
    data |= {**header_members(event.headers), **body_members(event.payload, event.content_type)}
    if event.content_type:
        data["content_type"] = event.content_type
    return {
        "type": event.kind,
        "timestamp": rfc3339(event.at_ms),
        "id": event.event_id,
        "source": event.source,
        "data": data,
    }


_FACTS = (
    "millstream-sent-at",
    "millstream-offset",
    "millstream-stream",
    "millstream-shard",
    "millstream-key",
    "millstream-group",
)


def _plain(event: Event, name: str) -> str | int | None:
    place = event.location
    facts: dict[str, str | int | None] = {
        "millstream-sent-at": rfc3339(event.at_ms),
        "millstream-offset": None if place is None else place.offset,
        "millstream-stream": event.stream,
        "millstream-shard": None if place is None else place.shard,
        "millstream-key": event.key,
        "millstream-group": event.group,
    }
    return facts[name]


def _facts(event: Event) -> list[tuple[str, str]]:
    values = [(name, _plain(event, name)) for name in _FACTS]
    return [
        (name, _field_value(str(value).encode()))
        for name, value in values
        if value not in (None, "")
    ]


def _field_value(value: bytes) -> str:
    """Percent-encode all but visible ASCII, and spaces at the edges, for a header."""
    quoted = quote_from_bytes(value, safe=_VISIBLE)
    inner = quoted.strip(" ")
    left = len(quoted) - len(quoted.lstrip(" "))
    return "%20" * left + inner + "%20" * (len(quoted) - len(inner) - left)


def _own(headers: Headers) -> list[tuple[str, str]]:
    """Return the message's own headers."""
    return [
        (
            f"millstream-header-{quote_from_bytes(name.encode(), safe=_NAME_MARKS)}",
            _field_value(value),
        )
        for name, _, value in headers
        if not name.startswith(RESERVED)
    ]


def _trace(headers: Headers, context: bytes) -> list[tuple[str, str]]:
    """Continue the message's trace in a span of this delivery (W3C Trace Context)."""
    trace_headers = {name: value for name, _, value in headers if name in (TRACEPARENT, TRACESTATE)}
    parts = parts_of(trace_headers.get(TRACEPARENT, b""))
    if context:
        parent = (TRACEPARENT, context.decode())
    elif parts is None:
        return []
    else:
        trace, _, flags = parts
        parent = (TRACEPARENT, f"00-{trace}-{secrets.token_hex(8)}-{flags:02x}")
    state = trace_headers.get(TRACESTATE, b"") if parts else b""
    if not state.isascii() or not state.decode().isprintable() or not state.strip():
        return [parent]
    return [parent, (TRACESTATE, state.decode().strip())]
