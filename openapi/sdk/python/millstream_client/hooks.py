"""Hooks and debug log of each attempt of a call, for metrics, traces and troubleshooting."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

    from millstream_client.calls import Call

log = logging.getLogger("millstream_client")


@dataclass(frozen=True)
class RequestEvent:
    """An attempt that is about to be sent.

    `operation` is the operation id of the OpenAPI document, `attempt` counts from 1, and headers that a hook adds to
    `headers` are sent. They contain the API key.
    """

    operation: str
    method: str
    path: str
    attempt: int
    headers: dict[str, str]


@dataclass(frozen=True)
class ResponseEvent:
    """The end of an attempt: a response with its `status`, or an `error` without one."""

    request: RequestEvent
    duration_seconds: float
    status: int | None = None
    request_id: str = ""
    error: Exception | None = None


OnRequest = Callable[[RequestEvent], object]
OnResponse = Callable[[ResponseEvent], object]
Ended = Callable[["httpx.Response | None", "Exception | None"], None]


@dataclass(frozen=True)
class Hooks:
    """Functions that are called for each attempt.

    An error that one raises is logged, and the call continues.
    """

    on_request: OnRequest | None = None
    on_response: OnResponse | None = None

    def begin(
        self, call: Call[Any], attempt: int, headers: dict[str, str], now: Callable[[], float]
    ) -> Ended:
        """Report that an attempt begins; return the function that reports its end."""
        has_hook = self.on_request is not None or self.on_response is not None
        if not has_hook and not log.isEnabledFor(logging.DEBUG):
            return _unreported
        request = RequestEvent(call.operation, call.method, call.path, attempt, headers)
        _run(self.on_request, request)
        started_at = now()

        def end(response: httpx.Response | None, error: Exception | None) -> None:
            duration = now() - started_at
            self._end(_event(request, duration, response, error))

        return end

    def _end(self, event: ResponseEvent) -> None:
        _log(event)
        _run(self.on_response, event)


def _unreported(response: httpx.Response | None, error: Exception | None) -> None:
    """Report nothing."""


def _event(
    request: RequestEvent,
    duration: float,
    response: httpx.Response | None,
    error: Exception | None,
) -> ResponseEvent:
    if response is None:
        return ResponseEvent(request, duration, error=error)
    request_id = response.headers.get("x-request-id", "")
    return ResponseEvent(request, duration, response.status_code, request_id)


def _log(event: ResponseEvent) -> None:
    request = event.request
    log.debug(
        "%s %s %s in %.1f ms, attempt %d, request id %s",
        request.method,
        request.path,
        event.status or repr(event.error),
        event.duration_seconds * 1000,
        request.attempt,
        event.request_id or "unknown",
    )


def _run(hook: Callable[[Any], object] | None, event: RequestEvent | ResponseEvent) -> None:
    if hook is None:
        return
    try:
        hook(event)
    except Exception:
        log.exception("A hook failed")
