"""uvicorn's HTTP protocol with limits on requests that apply before they are parsed.

    head    limited bytes, number of headers and URL length     431, 431, 414
    time    a head and a body arrive at a minimum rate          408, or the connection ends

A request beyond a limit gets a response, and the connection ends: its remaining bytes cannot be told from a next request.
"""

import secrets
from http import HTTPStatus
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from api.errors import HttpError, HttpErrorCode
from api.native.problems import PROBLEM_JSON, problem
from api.server.gateway import Gateway
from api.server.slow_requests import SlowRequestMonitor, deadline_s
from storage.domain import limits

_NOTHING, _HEAD, _BODY = range(3)  # part of a request that has begun to arrive, and not ended

_HEAD_TOO_LARGE = HttpError(
    HttpErrorCode.HEADERS_TOO_LARGE,
    f"The request line and headers can have at most {limits.HEAD_BYTES_MAX} bytes and {limits.HEAD_HEADERS_MAX} headers.",
)
_URL_TOO_LONG = HttpError(
    HttpErrorCode.URL_TOO_LONG, f"The path and query can have at most {limits.URL_BYTES_MAX} bytes."
)
_TOO_SLOW = HttpError(
    HttpErrorCode.REQUEST_TOO_SLOW, "The request was not complete within the time limit."
)
_MALFORMED = HttpError(HttpErrorCode.BAD_REQUEST, "Invalid HTTP request.")


class PacedProtocol(HttpToolsProtocol):
    """HTTP protocol whose connections must make progress with their request."""

    # Slots, because with more names Python would no longer share the keys of the instances' dicts.
    __slots__ = (
        "_begun_at",
        "_busy_at",
        "_received",
        "_refusal",
        "_stage",
        "_unfinished",
        "_waits",
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._unfinished = (
            self.app.unfinished if isinstance(self.app, Gateway) else SlowRequestMonitor()
        )
        self._waits = False  # whether it is monitored
        self._stage = _NOTHING
        self._received = 0  # at least the bytes since the request began
        self._busy_at = self._begun_at = 0.0
        self._refusal = _MALFORMED

    def connection_made(self, transport: Any) -> None:
        """Expect a request from the new connection."""
        super().connection_made(transport)
        self._begun_at = self.loop.time()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop monitoring the connection."""
        self._wait_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the data, and monitor the connection while the request is incomplete."""
        if self._stage == _NOTHING:
            self._received = 0
        self._received += len(data)
        super().data_received(data)
        if self._stage == _NOTHING:
            if self._waits:
                self._wait_no_more()
            return
        if self._stage == _HEAD and self._received > limits.HEAD_BYTES_MAX:
            self._refuse(_HEAD_TOO_LARGE)
        elif not self._waits and not self.transport.is_closing():
            self._wait()

    def handle_websocket_upgrade(self) -> None:
        """Stop monitoring: another protocol takes over the connection."""
        self._stage = _NOTHING
        self._wait_no_more()
        super().handle_websocket_upgrade()

    def on_message_begin(self) -> None:
        """Record the first byte of a request."""
        self._stage, self._begun_at = _HEAD, self._busy_at

    def begin_scope(self) -> None:
        """Call uvicorn's handler of the first byte."""
        super().on_message_begin()

    def is_whole(self) -> None:
        """Mark the request as complete."""
        self._stage = _NOTHING

    def check_head(self) -> None:
        """Check the complete headers. Raises HttpError, which ends the connection."""
        self._stage = _BODY
        if len(self.url) > limits.URL_BYTES_MAX:
            self._refusal = _URL_TOO_LONG
            raise _URL_TOO_LONG
        too_many = len(self.headers) > limits.HEAD_HEADERS_MAX
        if too_many or (self._received > limits.HEAD_BYTES_MAX and self._is_head_large()):
            self._refusal = _HEAD_TOO_LARGE
            raise _HEAD_TOO_LARGE

    def _is_head_large(self) -> bool:
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        return size > limits.HEAD_BYTES_MAX

    def on_message_complete(self) -> None:
        """Record the end of a request."""
        self.is_whole()
        super().on_message_complete()

    def check_deadline(self, now_s: float) -> None:
        """Close the connection if its request is too slow.

        A request that waits for this server, as behind one being answered, is not slow.
        """
        if self.flow.read_paused or self.pipeline:
            return
        has_head = self._stage == _BODY
        if now_s - self._begun_at <= deadline_s(self._received, has_head=has_head):
            return
        if self._stage == _HEAD and not self._is_answering():
            self._refuse(_TOO_SLOW)
        else:
            self._wait_no_more()
            self.transport.close()

    def _is_answering(self) -> bool:
        before = cast(Any, self.cycle)
        return before is not None and not before.response_complete

    def send_400_response(self, msg: str) -> None:
        """Refuse an unparsable request, or the one that `check_head` refused."""
        self._refuse(self._refusal)

    def _refuse(self, refusal: HttpError) -> None:
        """Send the problem response and close the connection."""
        self._stage = _NOTHING
        self._wait_no_more()
        if self.transport.is_closing():
            return
        request_id = secrets.token_hex(10)
        details = problem(refusal, instance="", request_id=request_id)
        lines = [
            f"HTTP/1.1 {details.status} {HTTPStatus(details.status).phrase}",
            *(f"{name.decode()}: {value.decode()}" for name, value in self._default_headers),
            f"content-type: {PROBLEM_JSON}",
            f"content-length: {len(details.body)}",
            f"x-request-id: {request_id}",
            "connection: close",
        ]
        self.transport.write("\r\n".join(lines).encode() + b"\r\n\r\n" + details.body)
        self.transport.close()

    @property
    def _default_headers(self) -> list[tuple[bytes, bytes]]:
        return self.server_state.default_headers

    def _wait(self) -> None:
        self._waits = True
        self._unfinished.add(self, self.loop)

    def _wait_no_more(self) -> None:
        if self._waits:
            self._waits = False
            self._unfinished.discard(self)
