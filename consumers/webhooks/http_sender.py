"""HTTP sender: renders, signs and posts an event, and evaluates the response.

Success is a response of the 200s, and nothing else; no redirect is followed. Of a response's body at most 4 KiB are read.
"""

import asyncio
import logging
import ssl
import time
from email.utils import parsedate_to_datetime
from typing import Protocol

import httpcore
import httpx

from consumers.webhooks.payload import render
from consumers.webhooks.signature import Signer
from consumers.webhooks.ssrf_guard import AddressRefused, Connections, Resolve, resolve
from storage.domain import limits
from storage.domain.access.egress import Egress
from storage.domain.clock import Clock
from storage.domain.trace_context import context_of
from storage.domain.webhooks import Attempt, AttemptOutcome, Event, LeasedWebhook

logger = logging.getLogger(__name__)

_THROTTLES = frozenset({429, 502, 503, 504})
_GONE = 410
_UNANSWERED = 504  # a span's status for an attempt without a response
_FAILURES = (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError)
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


class _ReceiverResponse:
    """The response received so far."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.retry_after = ""
        self.body = b""

    def text(self) -> str:
        """Return the beginning of the body."""
        read = self.body[: limits.WEBHOOK_RESPONSE_BYTES_MAX]
        return read.decode(errors="replace").replace("\0", "\ufffd")


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
        self._url = httpx.URL(served.webhook.spec.url)
        self._target = httpcore.URL(
            scheme=self._url.raw_scheme,
            host=self._url.raw_host,
            port=self._url.port,
            target=self._url.raw_path,
        )
        self._connections = Connections(self._url, egress, resolver)
        self._fixed = [
            (b"host", self._url.netloc),
            (b"user-agent", _USER_AGENT),
            (b"accept", b"*/*"),
            (b"accept-encoding", b"identity"),
            *((name.encode(), value.encode()) for name, value in served.webhook.spec.headers or ()),
        ]

    async def close(self) -> None:
        """Close the connections."""
        await self._connections.close()

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
        answer, outcome, error = _ReceiverResponse(), AttemptOutcome.CONNECTION, ""
        try:
            async with asyncio.timeout(self._webhook.spec.timeout_ms / limits.SECOND_MS):
                await self._exchange(self._request(event, number, at_ms, context), answer)
        except TimeoutError:
            outcome, error = AttemptOutcome.TIMEOUT, "timed out"
        except AddressRefused as refused:
            outcome, error = AttemptOutcome.BLOCKED, str(refused)
        except (*_FAILURES, OSError) as failed:
            outcome, error = _of_failure(failed)
        except Exception as failed:  # it must not keep other events from their receiver
            logger.exception("webhook_request_failed", extra={"event": event.event_id})
            outcome, error = AttemptOutcome.CLIENT_ERROR, f"No request could be made: {failed!r}"
        if answer.status is not None:
            outcome, error = _of_status(answer.status)
        return Attempt(
            outcome=outcome,
            at_ms=at_ms,
            duration_ms=round((time.perf_counter() - started) * limits.SECOND_MS),
            status=answer.status,
            error=_plain(error)[: limits.WEBHOOK_ERROR_CHARACTERS_MAX],
            response=answer.text(),
            resent=resent,
            wait_ms=self._wait_ms(answer.retry_after),
        )

    async def _exchange(self, request: httpcore.Request, answer: _ReceiverResponse) -> None:
        """Send the request and fill in the response.

        Once its status is known, errors in its body change nothing.
        """
        async with self._connections.one() as connection:
            response = await connection.handle_async_request(request)
            try:
                answer.status = response.status
                answer.retry_after = _header(response, b"retry-after")
                async for piece in response.aiter_stream():
                    answer.body += piece
                    if len(answer.body) >= limits.WEBHOOK_RESPONSE_BYTES_MAX:
                        break
            finally:
                await response.aclose()

    def _request(self, event: Event, number: int, at_ms: int, context: bytes) -> httpcore.Request:
        spec = self._webhook.spec
        headers, body = render(event, spec.format, self._webhook.name.name, number, context)
        timestamp = at_ms // limits.SECOND_MS
        signature = self._signer.signature(event.event_id, timestamp, body, at_ms)
        return httpcore.Request(
            "POST",
            self._target,
            headers=[
                *self._fixed,
                *((name.encode(), value.encode()) for name, value in headers),
                (b"content-length", b"%d" % len(body)),
                (b"webhook-id", event.event_id.encode()),
                (b"webhook-timestamp", b"%d" % timestamp),
                (b"webhook-signature", signature.encode()),
            ],
            content=body,
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


def _header(response: httpcore.Response, name: bytes) -> str:
    values = [value for found, value in response.headers if found.lower() == name]
    return values[0].decode("latin-1") if values else ""


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


def _of_failure(failed: Exception) -> tuple[AttemptOutcome, str]:
    cause: BaseException | None = failed
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return AttemptOutcome.TLS, str(cause)
        cause = cause.__cause__ or cause.__context__
    kinds: dict[type[Exception], str] = {
        httpcore.ConnectError: "no connection",
        httpcore.RemoteProtocolError: "invalid HTTP response",
        httpcore.ReadError: "connection lost",
        httpcore.WriteError: "connection lost",
    }
    kind = kinds.get(type(failed), type(failed).__name__)
    return AttemptOutcome.CONNECTION, f"{kind}: {failed}" if str(failed) else kind
