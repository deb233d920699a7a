"""Responses to clients of every protocol, and their access log."""

import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import NamedTuple

import msgspec
from starlette.types import Receive

from api.http.request import FastRequest
from api.observability.logging import get_logger
from api.observability.metric_buffers import RequestMetrics
from api.observability.tracing import TraceSpan
from storage.domain import limits
from storage.domain.access.permissions import Principal
from storage.settings import Durability

CLIENT_CLOSED_REQUEST_STATUS = 499  # never sent: only for metrics
DURABILITY = b"millstream-durability"
"""Header of every hot response in a deployment with another durability than `always`; otherwise absent."""
ExtraHeaders = tuple[tuple[bytes, bytes], ...]

_log = get_logger("api")


class Response(msgspec.Struct, frozen=True, gc=False):
    """Complete response to a client. `extra_headers`: headers in addition to the usual ones.

    A response with `pieces` streams until they end; it has no `body`. They are closed when the client disconnects, and
    when the server ends unless it `drains`: then they end by themselves.
    """

    status: int
    kind: str
    body: bytes
    request_id: bytes
    extra_headers: ExtraHeaders
    pieces: AsyncGenerator[bytes] | None = None
    drains: bool = False


Responder = Callable[[FastRequest, Receive | None], Awaitable[Response | None]]
"""Handler of a hot request, whose body is not read yet when a `Receive` is given.

A failure is an answer too. None: the client has disconnected.
"""


class RouteMatch(NamedTuple):
    """Target of a hot request, determined by its method and path alone."""

    answer: Responder
    takes_body: bool
    segments: list[str]


FindRoute = Callable[[bytes, bytes], RouteMatch | None]
"""Resolver of the route of a method and a raw path."""


def durability_header(durability: Durability) -> ExtraHeaders:
    """Return the durability header of hot responses; none where durability is `always`."""
    return () if durability == "always" else ((DURABILITY, durability.encode()),)


class RequestContext(msgspec.Struct, frozen=True, gc=False):
    """Context of a request's log line: principal, span, and start by `time.perf_counter`."""

    principal: Principal | None = None
    trace: TraceSpan | None = None
    started: float | None = None

    def elapsed_s(self) -> float:
        """Return the elapsed time in seconds; 0 if the start is unknown."""
        return 0.0 if self.started is None else time.perf_counter() - self.started

    def fields(self) -> dict[str, str | float]:
        """Return the fields of a log line."""
        principal, trace = self.principal, self.trace
        return {
            "trace_id": trace.trace_id if trace else "",
            "span_id": trace.span_id if trace else "",
            "namespace": principal.namespace if principal else "",
            "principal": principal.name if principal else "",
            "duration_ms": round(self.elapsed_s() * limits.SECOND_MS, 1),
        }


_UNKNOWN = RequestContext()


def log_failure(
    error: Exception,
    operation: str,
    status: int,
    request_id: bytes,
    context: RequestContext = _UNKNOWN,
) -> None:
    """Log only failures of the service: a client's mistakes are the client's to log."""
    if status < 500:
        return
    unexpected = status == 500
    _log.log(
        40 if unexpected else 30,
        "request_failed",
        operation=operation,
        status=status,
        request_id=request_id.decode(),
        error=type(error).__name__,
        **context.fields(),
        exc_info=error if unexpected else None,
    )


class AccessLog:
    """Access log of all or a sample of requests: the operation, never its data."""

    def __init__(self, rate: float) -> None:
        self._rate = rate

    def note(self, operation: str, status: int, request_id: bytes, context: RequestContext) -> None:
        """Log a request that was answered, or whose client disconnected."""
        if random.random() >= self._rate:  # noqa: S311
            return
        _log.info(
            "request",
            operation=operation,
            status=status,
            request_id=request_id.decode(),
            **context.fields(),
        )


class RequestRecorder:
    """Recorder of a protocol's finished requests: counts them, ends spans and logs."""

    def __init__(self, metrics: RequestMetrics, access: AccessLog | None) -> None:
        self._metrics = metrics
        self._access = access

    def note(
        self,
        operation: str,
        status: int,
        request_id: bytes,
        context: RequestContext,
        failure: str = "",
    ) -> None:
        """Record an answered request or a disconnected client. `failure`: the error code, if any."""
        self._metrics.observe(operation, status, context.elapsed_s())
        if context.trace is not None:
            context.trace.end(status, failure)
        if self._access is not None:
            self._access.note(operation, status, request_id, context)
