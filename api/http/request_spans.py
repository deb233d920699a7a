"""Trace spans for requests of each protocol."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from api.http.routing import FastRequest, Route
from api.observability.tracing import Trace, Tracing, verb_of, with_context
from api.types import RequestHeaders
from storage.domain.log.record_batch import Headers, Record, headers_size_bytes
from storage.domain.queues.message import NewMessage
from storage.domain.trace_context import TRACEPARENT, context_of, is_context, with_trace

_PARENT, _STATE = b"traceparent", b"tracestate"


def begin_hot(tracing: Tracing, route: Route, request: FastRequest) -> Trace:
    """Begin the span of a hot request."""
    verb = verb_of(route.action, route.operation)
    trace = begin(tracing, verb, route.operation, request.segments[3], request.headers)
    request.trace = trace
    return trace


def begin(
    tracing: Tracing, verb: str, operation: str, destination: str, headers: RequestHeaders
) -> Trace:
    """Begin the span of an operation that a request calls."""
    parent = headers.get(_PARENT, b"")
    if not is_context(parent):
        parent = b""
    return tracing.begin(verb, operation, destination, parent, headers.get(_STATE, b""))


def name_by_route(trace: Trace, method: str, route: str) -> None:
    """Name the span of any other request by its route, which is known once it has ended."""
    if route:
        trace.named(f"{method} {route}")
        trace.about({"http.route": route})


def contexts_of_records(records: Iterable[Record]) -> Iterable[bytes]:
    """Return the trace contexts in which records were created."""
    return (context_of(record.headers) for record in records)


def sent_in(messages: Sequence[NewMessage], trace: Trace) -> list[NewMessage]:
    """Add the sender's trace context to messages that have none of their own.

    It is stored beside their headers, so that it makes no message too large.
    """
    return [replace(one, system=with_context(one.system, one.headers, trace)) for one in messages]


def appended_in(records: Sequence[Record], trace: Trace, bytes_max: int) -> list[Record]:
    """Add the appender's trace context to records without one, if it fits in `bytes_max`."""
    context: Headers = ((TRACEPARENT, "", trace.context),)
    room = bytes_max - headers_size_bytes(context)
    return [
        replace(one, headers=with_trace(one.headers, context)) if one.size_bytes <= room else one
        for one in records
    ]
