"""Responses of unknown length to HTTP/1.0 clients, which the connection's end delimits.

HTTP/1.0 has no chunks (RFC 9112, section 6.3).
"""

from collections.abc import Iterable

from starlette.types import Message
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

_WITHOUT_BODY = (204, 304)


def end_with_close(cycle: RequestResponseCycle) -> None:
    """End responses of a cycle that have no length with the connection.

    uvicorn's own `send` uses chunks whatever the version.
    """
    cycle.send = _CloseDelimitedSend(cycle)  # type: ignore[method-assign, assignment]


class _CloseDelimitedSend:
    """Wrapper of a cycle's `send`."""

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._send = cycle.send
        self._is_delimited = False

    async def __call__(self, message: Message) -> None:
        cycle = self._cycle
        if message["type"] == "http.response.start":
            self._is_delimited = not _has_length(message.get("headers", ()))
            if self._is_delimited and message["status"] not in _WITHOUT_BODY:
                cycle.chunked_encoding = cycle.keep_alive = False
        elif self._is_delimited:
            cycle.expected_content_length = len(message.get("body", b""))
        await self._send(message)  # type: ignore[arg-type]


def _has_length(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(name.lower() == b"content-length" for name, _ in headers)
