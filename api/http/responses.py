"""What goes back to a client, whichever door it came through."""

import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import NamedTuple

from starlette.types import Receive

from api.http.routing import HotRequest
from api.observability.logging import get_logger
from api.observability.metric_definitions import RequestMetrics
from api.observability.tracing import Trace
from storage.domain import limits
from storage.domain.access.permissions import Principal
from storage.settings import Durability

CLIENT_GONE_STATUS = 499  # nobody reads it: only for counting
DURABILITY = b"millstream-durability"
"""Says on every hot answer that this deployment promises less than `always`; absent where it does not."""

ExtraHeaders = tuple[tuple[bytes, bytes], ...]

_log = get_logger("api")


class Answer(NamedTuple):
    """Everything that goes back to a client. `more`: headers beside the usual ones.

    An answer with `pieces` goes on until they end; it has no `body`. They are closed when the client leaves, and when
    the server ends unless it `drains`: then they end by themselves.
    """

    status: int
    kind: str
    body: bytes
    request_id: bytes
    more: ExtraHeaders
    pieces: AsyncGenerator[bytes] | None = None
    drains: bool = False


Answerer = Callable[[HotRequest, Receive | None], Awaitable[Answer | None]]
"""Answers a hot request, whose body is still to come when a `Receive` is given.

A failure is an answer too. None: the client is gone, and nobody would read it.
"""


class Place(NamedTuple):
    """Where a hot request leads, whatever it says beside its method and path."""

    answer: Answerer
    takes_body: bool
    words: list[str]


FindPlace = Callable[[bytes, bytes], Place | None]
"""The place of a method and a raw path."""


def weaker_promise(durability: Durability) -> ExtraHeaders:
    """What every hot answer says of its deployment."""
    return () if durability == "always" else ((DURABILITY, durability.encode()),)


class Circumstances(NamedTuple):
    """What else a line about a request says: whose it is, its span, and when it began, as `time.perf_counter` has it."""

    principal: Principal | None = None
    trace: Trace | None = None
    started: float | None = None

    def lasted_s(self) -> float:
        """For how long, in seconds."""
        return 0.0 if self.started is None else time.perf_counter() - self.started

    def fields(self) -> dict[str, str | float]:
        """As a line has them."""
        principal, trace = self.principal, self.trace
        return {
            "trace_id": trace.trace_id if trace else "",
            "span_id": trace.span_id if trace else "",
            "namespace": principal.namespace if principal else "",
            "principal": principal.name if principal else "",
            "duration_ms": round(self.lasted_s() * limits.SECOND_MS, 1),
        }


_UNKNOWN = Circumstances()


def log_failure(
    error: Exception,
    operation: str,
    status: int,
    request_id: bytes,
    around: Circumstances = _UNKNOWN,
) -> None:
    """Only what the service is to blame for: a client's mistakes are its own to log."""
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
        **around.fields(),
        exc_info=error if unexpected else None,
    )


class AccessLog:
    """A line for each request, or for some of them: what was done, never with what."""

    def __init__(self, rate: float) -> None:
        self._rate = rate

    def note(self, operation: str, status: int, request_id: bytes, around: Circumstances) -> None:
        """A request was answered, or its client was gone."""
        if random.random() >= self._rate:  # noqa: S311
            return
        _log.info(
            "request",
            operation=operation,
            status=status,
            request_id=request_id.decode(),
            **around.fields(),
        )


class Ended:
    """Where a door's requests that are over are counted, end their spans, and are logged."""

    def __init__(self, metrics: RequestMetrics, access: AccessLog | None) -> None:
        self._metrics = metrics
        self._access = access

    def note(
        self,
        operation: str,
        status: int,
        request_id: bytes,
        around: Circumstances,
        failure: str = "",
    ) -> None:
        """A request was answered, or its client was gone; `failure`: in one word, where it failed."""
        self._metrics.observe(operation, status, around.lasted_s())
        if around.trace is not None:
            around.trace.end(status, failure)
        if self._access is not None:
            self._access.note(operation, status, request_id, around)
