"""W3C trace context of a message: the trace that it belongs to.

    the message's own headers    traceparent, tracestate    as its sender gave them, never changed
    recorded by the endpoint     :traceparent               where the sender gave it in another way

The message's own headers take precedence.
"""

import re

from storage.domain import limits
from storage.domain.log.record_batch import Header, Headers

TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"
NOTED = ":traceparent"

OF_TRACES = frozenset({TRACEPARENT, TRACESTATE, NOTED})
"""Headers that state the trace of a send, and nothing about its content: a retry has different ones."""

_CONTEXT = re.compile(
    rb"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})"
)


def is_context(value: bytes) -> bool:
    """Return whether this is a valid traceparent."""
    return _CONTEXT.fullmatch(value) is not None


def parts_of(value: bytes) -> tuple[str, str, int] | None:
    """Return the trace, the span and the flags of a traceparent; None if it is invalid."""
    match = _CONTEXT.fullmatch(value)
    if match is None:
        return None
    return match[2].decode(), match[3].decode(), int(match[4], 16)


def noted(context: bytes) -> Header:
    """Return the header by which an endpoint records a context that came outside the headers."""
    return (NOTED, "", context)


def context_of(headers: Headers, system: Headers = ()) -> bytes:
    """Return the context in which a message was sent; empty without a valid one."""
    for name, _, value in headers:
        if name == TRACEPARENT:
            return value if is_context(value) else b""
    for name, _, value in system:
        if name == NOTED:
            return value
    return b""


def with_noted(headers: Headers, system: Headers) -> Headers:
    """Return the headers for a reader.

    The recorded context is included if the message has none of its own.
    """
    if not system or any(name == TRACEPARENT for name, _, _ in headers):
        return headers
    recorded = [(TRACEPARENT, kind, value) for name, kind, value in system if name == NOTED]
    return (*headers, *recorded) if recorded else headers


def without_context(headers: Headers) -> Headers:
    """Return the headers that describe the message itself."""
    if any(name in OF_TRACES for name, _, _ in headers):
        return tuple(header for header in headers if header[0] not in OF_TRACES)
    return headers


def with_trace(headers: Headers, trace: Headers) -> Headers:
    """Add the request's trace context to a message's headers.

    They are unchanged if the message has a context of its own, or would exceed HEADERS_MAX.
    """
    if any(name in (TRACEPARENT, TRACESTATE) for name, _, _ in headers):
        return headers
    if len(headers) + len(trace) > limits.HEADERS_MAX:
        return headers
    return (*headers, *trace)
