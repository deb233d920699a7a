"""Trace spans for requests of each protocol."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from api.http.request import FastRequest
from api.http.routing import Route
from api.observability.tracing import TraceSpan, Tracing, verb_of, with_context
from api.types import RequestHeaders
from storage.domain.log.record_batch import Headers, Record, headers_size_bytes
from storage.domain.queues.message import NewMessage
from storage.domain.trace_context import TRACEPARENT, context_of, is_context, with_trace

Item = TypeVar("Item", NewMessage, Record)

_PARENT, _STATE = b"traceparent", b"tracestate"


def start_fast_span(tracing: Tracing, route: Route, request: FastRequest) -> TraceSpan:
    """Begin the span of a hot request."""
    verb = verb_of(route.action, route.operation)
    trace = start_span(tracing, verb, route.operation, request.segments[3], request.headers)
    request.trace = trace
    return trace


def start_span(
    tracing: Tracing, verb: str, operation: str, destination: str, headers: RequestHeaders
) -> TraceSpan:
    """Begin the span of an operation that a request calls."""
    parent = headers.get(_PARENT, b"")
    if not is_context(parent):
        parent = b""
    return tracing.start_span(verb, operation, destination, parent, headers.get(_STATE, b""))


def name_by_route(trace: TraceSpan, method: str, route: str) -> None:
    """Name the span of any other request by its route, which is known once it has ended."""
    if route:
        trace.rename(f"{method} {route}")
        trace.set_attributes({"http.route": route})


def contexts_of_records(records: Iterable[Record]) -> Iterable[bytes]:
    """Return the trace contexts in which records were created."""
    return (context_of(record.headers) for record in records)


def with_callers_trace(items: list[Item], trace: Headers) -> list[Item]:
    """Add the trace of a request's headers to the messages or records that have none."""
    if not trace:
        return items
    return [replace(item, headers=with_trace(item.headers, trace)) for item in items]


def with_span_context(messages: Sequence[NewMessage], trace: TraceSpan) -> list[NewMessage]:
    """Add the sender's trace context to messages that have none of their own.

    It is stored beside their headers, so that it makes no message too large.
    """
    return [replace(one, system=with_context(one.system, one.headers, trace)) for one in messages]


def records_with_span_context(
    records: Sequence[Record], trace: TraceSpan, bytes_max: int
) -> list[Record]:
    """Add the appender's trace context to records without one, if it fits in `bytes_max`."""
    context: Headers = ((TRACEPARENT, "", trace.context),)
    room = bytes_max - headers_size_bytes(context)
    return [
        replace(one, headers=with_trace(one.headers, context)) if one.size_bytes <= room else one
        for one in records
    ]
