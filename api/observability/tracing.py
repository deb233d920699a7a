"""Tracing of this process's operations, if spans are collected.

    a request ─▶ begin ───── attributes ──────▶ end        exported over OTLP, in the background
                   │           │
                   │           └ links to the contexts in which its messages were created
                   └ its context goes into what it sends, if that has none

If spans are not collected, the cost is a comparison with None for each request.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from api.errors import HttpError
from api.types import RequestHeaders
from storage.domain.access.permissions import Action
from storage.domain.errors import MillstreamError
from storage.domain.log.record_batch import Headers
from storage.domain.queues.message import ReceivedMessage
from storage.domain.trace_context import context_of, noted

SEND, RECEIVE, SETTLE = "send", "receive", "settle"
_RECEIVING = ("receive", "fetch", "read", "get", "subscribe")
_SETTLING = ("settle", "commit", "delete", "change")
_VERBS = {
    Action.QUEUE_SEND: SEND,
    Action.STREAM_PUT: SEND,
    Action.TOPIC_PUBLISH: SEND,
    Action.QUEUE_RECEIVE: RECEIVE,
    Action.STREAM_READ: RECEIVE,
    Action.GROUP_COMMIT: RECEIVE,
}


class TraceSpan(Protocol):
    """One operation in progress."""

    @property
    def trace_id(self) -> str:
        """The trace id in hex, as in logs; empty before the span starts."""
        ...

    @property
    def span_id(self) -> str:
        """The span id in hex, as in logs; empty before the span starts."""
        ...

    @property
    def context(self) -> bytes:
        """The span's own context, as a traceparent."""
        ...

    def set_attributes(self, attributes: Mapping[str, str | int]) -> None:
        """Add attributes to the span."""

    def rename(self, name: str) -> None:
        """Rename the span."""

    def add_links(self, contexts: Iterable[bytes], count: int) -> None:
        """Record the number of messages or records, with links to their contexts.

        They are those that the operation sends or delivers; empty contexts are ignored.
        """

    def end(self, status: int, failure: str = "") -> None:
        """End the span with an HTTP status; `failure`: the error code, if it failed."""


class Tracing(Protocol):
    """Factory of spans."""

    def start_span(
        self, verb: str, operation: str, destination: str, parent: bytes, state: bytes = b""
    ) -> TraceSpan:
        """Begin an operation on a queue or stream.

        `verb` is SEND, RECEIVE, SETTLE or empty. `parent`: its caller's context.
        """
        ...

    def start_request_span(self, method: str, headers: RequestHeaders) -> TraceSpan:
        """Begin any other request."""
        ...

    def start_delivery_span(self, webhook: str, source: str, context: bytes) -> TraceSpan:
        """Begin a webhook delivery of a message or record created in `context`."""
        ...

    def close(self) -> None:
        """Export pending spans; may take a few seconds."""


def verb_of(action: Action | None, operation: str) -> str:
    """Return SEND, RECEIVE or SETTLE; empty for other operations."""
    verb = _VERBS.get(action, "") if action else ""
    if verb != RECEIVE:
        return verb
    word = operation.lower()
    if word.startswith(_SETTLING):
        return SETTLE
    return RECEIVE if word.startswith(_RECEIVING) else ""


def failure_of(error: Exception) -> str:
    """Return the code of an error."""
    if isinstance(error, MillstreamError | HttpError):
        return error.code.value
    return type(error).__name__


def contexts_of(messages: Iterable[ReceivedMessage]) -> Iterable[bytes]:
    """Return the contexts in which messages were created."""
    return (context_of(message.headers, message.system) for message in messages)


def with_context(system: Headers, headers: Headers, trace: TraceSpan | None) -> Headers:
    """Return the `system` headers, adding the context of the sending span if there is none."""
    if trace is None or context_of(headers, system):
        return system
    return (*system, noted(trace.context))
