"""HTTP sender: renders, signs and posts an event, and evaluates the response.

Success is a response of the 200s, and nothing else; no redirect is followed. Of a response's body at most 4 KiB are read.
"""

import logging
import time
from email.utils import parsedate_to_datetime
from typing import NamedTuple, Protocol

import httpcore
import httpx

from consumers.webhooks.access_tokens import AccessTokens, TokenUnavailable
from consumers.webhooks.payload import render
from consumers.webhooks.signature import Signer
from consumers.webhooks.ssrf_guard import (
    REQUEST_FAILURES,
    AddressRefused,
    Connections,
    HttpResponse,
    Resolve,
    failure_text,
    resolve,
    tls_error,
)
from storage.domain import limits
from storage.domain.access.egress import Egress
from storage.domain.clock import Clock
from storage.domain.trace_context import context_of
from storage.domain.webhooks import Attempt, AttemptOutcome, Event, LeasedWebhook

logger = logging.getLogger(__name__)

_THROTTLES = frozenset({429, 502, 503, 504})
_GONE = 410
_UNAUTHORIZED = 401
_UNANSWERED = 504  # a span's status for an attempt without a response
_USER_AGENT = b"Millstream-Webhooks/1"


class Delivering(Protocol):
    """The span of an attempt.

    `context`: its own, as a traceparent.
    """

    @property
    def context(self) -> bytes: ...

    def end(self, status: int, failure: str = "") -> None: ...


class DeliveryTracing(Protocol):
    """Tracing of attempts as spans."""

    def start_delivery_span(self, webhook: str, source: str, context: bytes) -> Delivering: ...


class Sender:
    """Sender of one webhook's events, with its own connections."""

    def __init__(
        self,
        *,
        served: LeasedWebhook,
        egress: Egress,
        clock: Clock,
        resolver: Resolve = resolve,
        tracing: "DeliveryTracing | None" = None,
    ) -> None:
        self._tracing = tracing
        self._webhook = served.webhook
        self._signer = Signer(served.secrets)
        self._clock = clock
        spec = served.webhook.spec
        self._connections = Connections(httpx.URL(spec.url), egress, resolver)
        self._tokens: AccessTokens | None = None
        if spec.credentials is not None:
            self._tokens = AccessTokens(
                spec.credentials.oauth,
                timeout_ms=spec.timeout_ms,
                egress=egress,
                clock=clock,
                resolver=resolver,
            )
        self._fixed = [
            (b"host", self._connections.host),
            (b"user-agent", _USER_AGENT),
            (b"accept", b"*/*"),
            (b"accept-encoding", b"identity"),
            *((name.encode(), value.encode()) for name, value in spec.headers or ()),
        ]

    async def close(self) -> None:
        """Close the connections."""
        await self._connections.close()
        if self._tokens is not None:
            await self._tokens.close()

    async def post(self, event: Event, number: int, *, resent: bool = False) -> Attempt:
        """Send the event, for the `number`th time, and return the outcome.

        Raises nothing but CancelledError.
        """
        if self._tracing is None:
            return await self._post(event, number, b"", resent=resent)
        name, source = self._webhook.name.name, self._webhook.spec.source.name
        span = self._tracing.start_delivery_span(name, source, context_of(event.headers))
        attempt = await self._post(event, number, span.context, resent=resent)
        failure = "" if attempt.succeeded else attempt.outcome.value
        span.end(attempt.status or _UNANSWERED, failure)
        return attempt

    async def _post(
        self, event: Event, number: int, context: bytes, *, resent: bool = False
    ) -> Attempt:
        at_ms, started = self._clock.now_ms(), time.perf_counter()
        answer, outcome, error, retry_after = None, AttemptOutcome.CONNECTION, "", ""
        try:
            answer = await self._send(event, number, at_ms, context)
            outcome, error = _of_status(answer.status)
            retry_after = answer.retry_after
        except TokenUnavailable as failed:
            outcome, error = AttemptOutcome.CREDENTIALS, f"No access token: {failed}"
            retry_after = failed.retry_after
        except REQUEST_FAILURES as failed:
            outcome, error = _of_failure(failed), failure_text(failed)
        except Exception as failed:  # it must not keep other events from their receiver
            logger.exception("webhook_request_failed", extra={"event": event.event_id})
            outcome, error = AttemptOutcome.CLIENT_ERROR, f"No request could be made: {failed!r}"
        return Attempt(
            outcome=outcome,
            at_ms=at_ms,
            duration_ms=round((time.perf_counter() - started) * limits.SECOND_MS),
            status=None if answer is None else answer.status,
            error=_plain(error)[: limits.WEBHOOK_ERROR_CHARACTERS_MAX],
            response="" if answer is None else answer.text,
            resent=resent,
            wait_ms=self._wait_ms(retry_after),
        )

    async def _send(self, event: Event, number: int, at_ms: int, context: bytes) -> HttpResponse:
        """Send the event, with an access token if the webhook has credentials.

        If the receiver refuses the token, which may have been revoked, once more with another one. Raises TokenUnavailable,
        REQUEST_FAILURES.
        """
        request = self._request(event, number, at_ms, context)
        if self._tokens is None:
            return await self._exchange(request)
        token = await self._tokens.get()
        answer = await self._exchange(_with_token(request, token))
        if answer.status != _UNAUTHORIZED:
            return answer
        self._tokens.discard(token)
        return await self._exchange(_with_token(request, await self._tokens.get()))

    async def _exchange(self, request: "_RenderedRequest") -> HttpResponse:
        return await self._connections.exchange(
            httpcore.Request(
                "POST", self._connections.target, headers=request.headers, content=request.body
            ),
            timeout_ms=self._webhook.spec.timeout_ms,
            bytes_max=limits.WEBHOOK_RESPONSE_BYTES_MAX,
        )

    def _request(self, event: Event, number: int, at_ms: int, context: bytes) -> "_RenderedRequest":
        spec = self._webhook.spec
        headers, body = render(event, spec.format, self._webhook.name.name, number, context)
        timestamp = at_ms // limits.SECOND_MS
        signature = self._signer.signature(event.event_id, timestamp, body, at_ms)
        return _RenderedRequest(
            [
                *self._fixed,
                *((name.encode(), value.encode()) for name, value in headers),
                (b"content-length", b"%d" % len(body)),
                (b"webhook-id", event.event_id.encode()),
                (b"webhook-timestamp", b"%d" % timestamp),
                (b"webhook-signature", signature.encode()),
            ],
            body,
        )

    def _wait_ms(self, retry_after: str) -> int | None:
        """Parse a Retry-After, in seconds or as a date, limited to the maximum; None if invalid."""
        word = retry_after.strip()
        if not word:
            return None
        if word.isascii() and word.isdigit():
            return min(int(word[:9]) * limits.SECOND_MS, limits.WEBHOOK_RETRY_AFTER_MS_MAX)
        try:
            until_ms = round(parsedate_to_datetime(word).timestamp() * limits.SECOND_MS)
        except (ValueError, OverflowError):
            return None
        return max(0, min(until_ms - self._clock.now_ms(), limits.WEBHOOK_RETRY_AFTER_MS_MAX))


def _plain(text: str) -> str:
    """Return the text in the form that every store accepts."""
    return text.encode(errors="replace").decode().replace("\0", "\ufffd")


class _RenderedRequest(NamedTuple):
    headers: list[tuple[bytes, bytes]]
    body: bytes


def _with_token(request: _RenderedRequest, token: str) -> _RenderedRequest:
    authorization = (b"authorization", b"Bearer " + token.encode())
    return request._replace(headers=[*request.headers, authorization])


def _of_status(status: int) -> tuple[AttemptOutcome, str]:
    if 200 <= status < 300:
        return AttemptOutcome.DELIVERED, ""
    if 300 <= status < 400:
        return AttemptOutcome.REDIRECT, f"{status}: redirects are not followed"
    if status == _GONE:
        return AttemptOutcome.GONE, "410: the endpoint no longer accepts deliveries"
    if status in _THROTTLES:
        return AttemptOutcome.THROTTLED, f"{status}: the endpoint is throttling"
    return (AttemptOutcome.CLIENT_ERROR if status < 500 else AttemptOutcome.SERVER_ERROR), str(
        status
    )


def _of_failure(failed: BaseException) -> AttemptOutcome:
    if isinstance(failed, TimeoutError):
        return AttemptOutcome.TIMEOUT
    if isinstance(failed, AddressRefused):
        return AttemptOutcome.BLOCKED
    return AttemptOutcome.CONNECTION if tls_error(failed) is None else AttemptOutcome.TLS
