"""Spans of what this process does, where somebody collects them; else nothing at all.

    a request ─▶ begin ──── what it is about ──▶ end        exported over OTLP, beside everything else
                   │           │
                   │           └ links to the contexts in which what it found was made
                   └ its context goes into what it sends, where that has none

Who does not collect spans pays a comparison with None for each request.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from api.errors import Refusal
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
    Action.QUEUE_RECEIVE: RECEIVE,
    Action.STREAM_READ: RECEIVE,
    Action.GROUP_COMMIT: RECEIVE,
}


class Trace(Protocol):
    """One operation while it is done."""

    @property
    def trace_id(self) -> str:
        """In hex, as logs have it; empty before there is a span."""
        ...

    @property
    def span_id(self) -> str:
        """As trace_id."""
        ...

    @property
    def context(self) -> bytes:
        """Its own context, as a traceparent."""
        ...

    def about(self, attributes: Mapping[str, str | int]) -> None:
        """Say more of it."""

    def named(self, name: str) -> None:
        """Call it something else."""

    def found(self, contexts: Iterable[bytes], count: int) -> None:
        """It sends or gives so many messages or records, made in these contexts; empty ones say nothing."""

    def end(self, status: int, failure: str = "") -> None:
        """It is over, with an HTTP status; `failure`: in one word, where it failed."""


class Tracing(Protocol):
    """Where operations become spans."""

    def begin(
        self, verb: str, operation: str, destination: str, parent: bytes, state: bytes = b""
    ) -> Trace:
        """An operation on a queue or stream: `verb` is SEND, RECEIVE, SETTLE or empty. `parent`: its caller's context."""
        ...

    def begin_request(self, method: str, headers: RequestHeaders) -> Trace:
        """A request that is none of these."""
        ...

    def begin_delivery(self, webhook: str, source: str, context: bytes) -> Trace:
        """An attempt to deliver what was made in `context`."""
        ...

    def close(self) -> None:
        """Hand on what is there; may take a few seconds."""


def verb_of(action: Action, operation: str) -> str:
    """SEND, RECEIVE or SETTLE; empty for what is none of them."""
    verb = _VERBS.get(action, "")
    if verb != RECEIVE:
        return verb
    word = operation.lower()
    if word.startswith(_SETTLING):
        return SETTLE
    return RECEIVE if word.startswith(_RECEIVING) else ""


def failure_of(error: Exception) -> str:
    """An error in one word."""
    if isinstance(error, MillstreamError | Refusal):
        return error.code.value
    return type(error).__name__


def contexts_of(messages: Iterable[ReceivedMessage]) -> Iterable[bytes]:
    """The contexts in which messages were made."""
    return (context_of(message.headers, message.system) for message in messages)


def with_context(system: Headers, headers: Headers, trace: Trace | None) -> Headers:
    """A message's `system` headers, with the context of the span that sends it where it has none."""
    if trace is None or context_of(headers, system):
        return system
    return (*system, noted(trace.context))
