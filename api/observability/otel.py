"""OpenTelemetry spans; the only module that requires the OpenTelemetry SDK.

Names, kinds and attributes are those of the semantic conventions for messaging (1.44), as docs/how-to/tracing.md documents
them. The sampler, the limits, the exporter's headers and its certificates come from the standard `OTEL_…` variables.
"""

import os
import socket
import time
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from itertools import islice

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    TraceState,
    set_span_in_context,
)

from api.observability.tracing import RECEIVE, SEND
from api.types import RequestHeaders
from storage.domain import limits
from storage.domain.trace_context import parts_of

_SERVICE = "millstream"
_COUNT = "messaging.batch.message_count"
_FLUSH_MS = 3_000
_LONG_NS = limits.TRACE_LONG_POLL_MS * 1_000_000
Attributes = dict[str, str | int]


class OtelTracing:
    """Hands spans to an OTLP endpoint. As Tracing."""

    def __init__(self, endpoint: str) -> None:
        self._provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint)))
        self._tracer = self._provider.get_tracer(_SERVICE, version("millstream"))

    def start_span(
        self, verb: str, operation: str, destination: str, parent: bytes, state: bytes = b""
    ) -> "_OtelSpan":
        """Begin a span; a send without a parent creates its messages, so it is a producer."""
        kind = SpanKind.PRODUCER if verb == SEND and not parent else SpanKind.SERVER
        attributes: Attributes = {
            "messaging.system": _SERVICE,
            "messaging.operation.name": verb or operation,
            "millstream.operation": operation,
        }
        if verb:
            attributes["messaging.operation.type"] = verb
        if destination:
            attributes["messaging.destination.name"] = destination
        name = f"{verb or operation} {destination}".rstrip()
        begun = _OtelSpan(self._tracer, name, kind, attributes, _context(parent, state))
        if verb != RECEIVE:
            begun.start(time.time_ns())
        return begun

    def start_request_span(self, method: str, headers: RequestHeaders) -> "_OtelSpan":
        context = _context(headers.get(b"traceparent", b""), headers.get(b"tracestate", b""))
        attributes: Attributes = {"http.request.method": method}
        begun = _OtelSpan(self._tracer, method, SpanKind.SERVER, attributes, context)
        begun.start(time.time_ns())
        return begun

    def start_delivery_span(self, webhook: str, source: str, context: bytes) -> "_OtelSpan":
        """Begin a client span for an outgoing request, in the trace of what it delivers."""
        attributes: Attributes = {
            "messaging.system": _SERVICE,
            "messaging.operation.name": "deliver",
            "messaging.operation.type": "process",
            "messaging.destination.name": source,
            "messaging.destination.subscription.name": webhook,
        }
        parent = _context(context, b"")
        begun = _OtelSpan(self._tracer, f"deliver {webhook}", SpanKind.CLIENT, attributes, parent)
        begun.add_links([context], 1)
        begun.start(time.time_ns())
        return begun

    def close(self) -> None:
        self._provider.force_flush(_FLUSH_MS)
        self._provider.shutdown()


class _OtelSpan:
    """Span of one operation.

    A receive starts its span when it ends, so that a receive without messages has none, and one that waited has a span of
    its work rather than of its wait.
    """

    __slots__ = (
        "_attributes",
        "_context",
        "_kind",
        "_links",
        "_name",
        "_span",
        "_started_ns",
        "_tracer",
    )

    def __init__(
        self, tracer: Tracer, name: str, kind: SpanKind, attributes: Attributes, context: Context
    ) -> None:
        self._tracer = tracer
        self._name = name
        self._kind = kind
        self._attributes = attributes
        self._context = context
        self._links: list[Link] = []
        self._started_ns = time.time_ns()
        self._span: Span | None = None

    def start(self, at_ns: int) -> Span:
        """Start the span."""
        self._span = self._tracer.start_span(
            self._name,
            self._context,
            self._kind,
            self._attributes,
            self._links,
            at_ns,
            record_exception=False,
            set_status_on_exception=False,
        )
        return self._span

    @property
    def trace_id(self) -> str:
        return "" if self._span is None else f"{self._span.get_span_context().trace_id:032x}"

    @property
    def span_id(self) -> str:
        return "" if self._span is None else f"{self._span.get_span_context().span_id:016x}"

    @property
    def context(self) -> bytes:
        assert self._span is not None, "what sends has started"
        flags = int(self._span.get_span_context().trace_flags)
        return f"00-{self.trace_id}-{self.span_id}-{flags:02x}".encode()

    def set_attributes(self, attributes: Mapping[str, str | int]) -> None:
        self._attributes |= attributes
        if self._span is not None:
            self._span.set_attributes(attributes)

    def rename(self, name: str) -> None:
        self._name = name
        if self._span is not None:
            self._span.update_name(name)

    def add_links(self, contexts: Iterable[bytes], count: int) -> None:
        if not count:
            return
        self.set_attributes({_COUNT: count})
        for context in islice(filter(None, contexts), limits.TRACE_LINKS_MAX):
            made_in = _span_context(context, b"")
            if made_in is None:
                continue
            if self._span is None:
                self._links.append(Link(made_in))
            else:
                self._span.add_link(made_in)

    def end(self, status: int, failure: str = "") -> None:
        now_ns = time.time_ns()
        span = self._span
        if span is None:
            if not failure and _COUNT not in self._attributes:
                return
            span = self.start(self._worked_since(now_ns))
        if failure:
            span.set_attribute("error.type", failure)
        if status >= 500:
            span.set_status(Status(StatusCode.ERROR))
        span.set_attribute("http.response.status_code", status)
        span.end(now_ns)

    def _worked_since(self, now_ns: int) -> int:
        waited_ns = now_ns - self._started_ns
        if waited_ns < _LONG_NS:
            return self._started_ns
        self._attributes["millstream.waited_ms"] = waited_ns // 1_000_000
        return now_ns


def _context(parent: bytes, state: bytes) -> Context:
    """Return the parent context of a span: its caller's, or an empty one."""
    span_context = _span_context(parent, state)
    return (
        Context()
        if span_context is None
        else set_span_in_context(NonRecordingSpan(span_context), Context())
    )


def _span_context(parent: bytes, state: bytes) -> SpanContext | None:
    parts = parts_of(parent)
    if parts is None:
        return None
    trace, span, flags = parts
    trace_state = TraceState.from_header([state.decode("latin-1")]) if state else None
    return SpanContext(int(trace, 16), int(span, 16), True, TraceFlags(flags), trace_state)


def _resource() -> Resource:
    """Describe this process; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence."""
    own: dict[str, str] = {
        "service.name": _SERVICE,
        "service.version": version("millstream"),
        "service.instance.id": f"{socket.gethostname()}:{os.getpid()}",
    }
    return Resource.create(own).merge(OTELResourceDetector().detect())
