"""How requests of each door become spans."""

from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from api.dataplane import HotRequest, Route
from api.native.fields import with_trace
from api.payloads import RequestHeaders
from api.tracing import SEND, Trace, Tracing, verb_of
from storage.domain.batches import Headers, Record
from storage.domain.messages import NewMessage
from storage.domain.traces import TRACEPARENT, context_of, is_context

Item = TypeVar("Item", NewMessage, Record)

_PARENT, _STATE = b"traceparent", b"tracestate"


def begin_hot(tracing: Tracing, route: Route, request: HotRequest) -> Trace:
    """The span of a hot request; what it sends without a context of its own, and without a caller's, belongs to it."""
    verb = verb_of(route.action, route.operation)
    trace = begin(tracing, verb, route.operation, request.words[3], request.headers)
    if verb == SEND and not is_context(request.headers.get(_PARENT, b"")):
        headers = {name: value for name, value in request.headers.items() if name != _STATE}
        request.headers = {**headers, _PARENT: trace.context}
    request.trace = trace
    return trace


def begin(
    tracing: Tracing, verb: str, operation: str, destination: str, headers: RequestHeaders
) -> Trace:
    """The span of an operation that a request asks for."""
    parent = headers.get(_PARENT, b"")
    if not is_context(parent):
        parent = b""
    return tracing.begin(verb, operation, destination, parent, headers.get(_STATE, b""))


def end_request(trace: Trace, method: str, route: str, status: int, failure: str) -> None:
    """The span of any other request is over; it is called what its route is."""
    if route:
        trace.named(f"{method} {route}")
        trace.about({"http.route": route})
    trace.end(status, failure)


def contexts_of_records(records: Iterable[Record]) -> Iterable[bytes]:
    """The contexts in which records were made."""
    return (context_of(record.headers) for record in records)


def in_trace(items: list[Item], trace: Trace) -> list[Item]:
    """Messages or records, in the trace of what sends them; those that have a context of their own are linked."""
    trace.found((context_of(item.headers) for item in items), len(items))
    context: Headers = ((TRACEPARENT, "", trace.context),)
    return [replace(item, headers=with_trace(item.headers, context)) for item in items]
