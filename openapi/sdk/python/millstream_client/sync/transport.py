# Generated from aio/transport.py by `make sdk`; changes are lost.
"""HTTP transport with retries where they are safe."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from typing import Any, TypeVar

import httpx
import msgspec

from millstream_client.calls import Call
from millstream_client.errors import (
    Refused,
    is_foreign,
    not_millstream,
    refused,
    unsent_or_unknown,
)
from millstream_client.reachability import Reachability
from millstream_client.retries import Attempts, Retries
from millstream_client.settings import Acknowledge, Options
from millstream_client.sync.waiting import Sleep, sleep
from millstream_client.tracing import trace_headers

T = TypeVar("T")

CONNECT_S = 5.0
CONNECTIONS_MAX = 200


class Transport:
    """Connection pool of one service. Raises MillstreamError."""

    def __init__(
        self,
        options: Options,
        http: httpx.Client | None = None,
        pause: Sleep = sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.options = options
        self._is_ours = http is None
        self._http = http or httpx.Client(
            headers={"accept-encoding": "identity"},  # compression costs more than a network nearby
            verify=options.trust(),
            transport=options.transport,
            limits=httpx.Limits(max_connections=CONNECTIONS_MAX, keepalive_expiry=30.0),
        )
        self.sleep = pause
        self.service = Reachability(now)
        self._now = now

    def with_options(
        self,
        timeout_s: float | None = None,
        retries: Retries | None = None,
        acknowledge: Acknowledge | None = None,
    ) -> Transport:
        """Return a transport with other options that shares, and never closes, connections."""
        other = copy(self)
        other.options = self.options.replaced(timeout_s, retries, acknowledge)
        other._is_ours = False
        return other

    def call(self, call: Call[T], retries: Retries | None = None) -> T:
        """Return the call's result, after as many attempts as its retries allow."""
        attempts = self._attempts(call, retries or self.options.retries)
        while True:
            try:
                response = self._send(call, attempts.number)
            except httpx.TransportError as error:
                failure = unsent_or_unknown(error, self.options.url)
                failure.__cause__ = error
                if failure.outcome_unknown or isinstance(error, httpx.PoolTimeout):
                    self.service.established()
                pause = attempts.pause_after(failure)
            else:
                self.service.established()
                if response.is_success:
                    return self._read(call, response)
                if is_foreign(response):
                    raise not_millstream(response, self.options.url)
                problem: Refused = refused(response)
                if attempts.has_happened_before(problem):
                    return call.read(httpx.Response(204))
                pause = attempts.pause_after(problem)
            self.sleep(pause)

    def _attempts(self, call: Call[Any], retries: Retries) -> Attempts:
        return Attempts(call, retries, self._now, service=self.service)

    def _read(self, call: Call[T], response: httpx.Response) -> T:
        try:
            return call.read(response)
        except (msgspec.MsgspecError, ValueError, KeyError, TypeError) as error:
            raise not_millstream(response, self.options.url) from error

    def _send(self, call: Call[Any], attempt: int) -> httpx.Response:
        headers = {**self.options.headers, **trace_headers(), **call.headers}
        ended = self.options.hooks.begin(call, attempt, headers, self._now)
        try:
            response = self._request(call, headers)
        except httpx.TransportError as error:
            ended(None, error)
            raise
        ended(response, None)
        return response

    def _request(self, call: Call[Any], headers: dict[str, str]) -> httpx.Response:
        content = call.content if call.json is None else msgspec.json.encode(call.json)
        patience = httpx.Timeout(self.options.timeout_s + call.patience_s, connect=CONNECT_S)
        return self._http.request(
            call.method,
            self.options.url + call.path,
            params=call.params,
            headers=headers,
            content=content,
            timeout=patience,
        )

    def close(self) -> None:
        """Close the connections, unless the caller provided them."""
        if self._is_ours:
            self._http.close()
