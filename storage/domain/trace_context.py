"""The W3C trace context of a message: whose work it belongs to.

    the message's own headers   traceparent, tracestate    as its sender gave them, and never changed
    what its door noted         :traceparent               where the sender said it in another way

The own ones count before what was noted.
"""

import re

from storage.domain import limits
from storage.domain.log.record_batch import Header, Headers

TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"
NOTED = ":traceparent"

OF_TRACES = frozenset({TRACEPARENT, TRACESTATE, NOTED})
"""The headers that say in which work something was sent, and nothing of what was: a repeat has others."""

_CONTEXT = re.compile(
    rb"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})"
)


def is_context(value: bytes) -> bool:
    """Whether this is a traceparent that means something."""
    return _CONTEXT.fullmatch(value) is not None


def parts_of(value: bytes) -> tuple[str, str, int] | None:
    """The trace, the span and the flags of a traceparent; None where it means nothing."""
    found = _CONTEXT.fullmatch(value)
    if found is None:
        return None
    return found[2].decode(), found[3].decode(), int(found[4], 16)


def noted(context: bytes) -> Header:
    """How a door notes a context that came beside the headers."""
    return (NOTED, "", context)


def context_of(headers: Headers, system: Headers = ()) -> bytes:
    """The context in which a message was made; empty where there is none that means something."""
    for name, _, value in headers:
        if name == TRACEPARENT:
            return value if is_context(value) else b""
    for name, _, value in system:
        if name == NOTED:
            return value
    return b""


def with_noted(headers: Headers, system: Headers) -> Headers:
    """Headers as they are told: with what was noted, where the message has none of its own."""
    if not system or any(name == TRACEPARENT for name, _, _ in headers):
        return headers
    told = [(TRACEPARENT, kind, value) for name, kind, value in system if name == NOTED]
    return (*headers, *told) if told else headers


def without_context(headers: Headers) -> Headers:
    """The headers that say something of the message itself."""
    if any(name in OF_TRACES for name, _, _ in headers):
        return tuple(header for header in headers if header[0] not in OF_TRACES)
    return headers


def with_trace(headers: Headers, trace: Headers) -> Headers:
    """Add the request's trace context to a message's headers, unless it has its own or no room is left."""
    if any(name in (TRACEPARENT, TRACESTATE) for name, _, _ in headers):
        return headers
    if len(headers) + len(trace) > limits.HEADERS_MAX:
        return headers
    return (*headers, *trace)
