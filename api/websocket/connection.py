"""One socket: sends frames in order and measures how long a send has been stuck."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from starlette.types import Send

from api.websocket.codec import Wire
from api.websocket.frames import Bye, ServerFrame, is_worth_coming_back

_CLOSE_S = 1.0  # closing waits behind what a slow client has not read; then the connection is cut
_REASON_BYTES_MAX = 123  # of a close frame


class SocketClosed(Exception):
    """The socket is closed or lost and accepts no frames."""


class Connection:
    """The sending side of a WebSocket. Frames go out in the order in which they were sent."""

    __slots__ = (
        "_clock",
        "_send",
        "_sending",
        "_waiting_bytes",
        "abort",
        "address",
        "client",
        "closed",
        "last_received_s",
        "opened_s",
        "pinged_s",
        "slot_namespace",
        "stuck_s",
        "wire",
    )

    def __init__(
        self, send: Send, abort: Callable[[], None], wire: Wire, clock: Callable[[], float]
    ) -> None:
        self._send = send
        self.abort = abort
        self._clock = clock
        self._sending = 0
        self._waiting_bytes = 0
        self.wire = wire
        self.closed = False
        self.slot_namespace: str | None = None
        """The namespace whose connection slot it holds."""
        self.address = ""
        """The client's address."""
        self.client = b""
        """The client's program (`User-Agent`)."""
        self.opened_s = self.last_received_s = clock()
        self.pinged_s: float | None = None
        self.stuck_s: float | None = None
        """Since when sending has made no progress; None while nothing is being sent."""

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the frames that the socket has not accepted yet."""
        return self._waiting_bytes

    def frame_received(self) -> None:
        """Record that a frame arrived, so the client is alive."""
        self.last_received_s = self._clock()
        self.pinged_s = None

    async def send(self, frame: ServerFrame) -> None:
        """Send a frame. Raises SocketClosed."""
        await self.send_bytes(self.wire.encode(frame))

    async def send_bytes(self, payload: bytes) -> None:
        """Send an encoded frame; waits while the client reads too slowly. Raises SocketClosed."""
        if self.closed:
            raise SocketClosed
        if self.stuck_s is None:
            self.stuck_s = self._clock()
        self._sending += 1
        self._waiting_bytes += len(payload)
        try:
            if self.wire.binary:
                await self._send({"type": "websocket.send", "bytes": payload})
            else:
                await self._send({"type": "websocket.send", "text": payload.decode()})
        except (OSError, RuntimeError):  # lost, or closed concurrently
            self.closed = True
            raise SocketClosed from None
        finally:
            self._sending -= 1
            self._waiting_bytes -= len(payload)
            self.stuck_s = self._clock() if self._sending else None

    async def close(self, code: int, reason: str) -> None:
        """Send `bye` with the reason and close, in bounded time even if the client does not read."""
        await self.send_goodbye(code, reason)
        await self.close_only(code, reason)

    async def send_goodbye(self, code: int, reason: str, after_ms: int = 0) -> None:
        """Send `bye`: why the socket is about to close, and whether to reconnect."""
        bye = Bye(code, reason, is_worth_coming_back(code), after_ms / 1000)
        with suppress(SocketClosed, TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await self.send(bye)

    async def close_only(self, code: int, reason: str) -> None:
        """Close without a `bye`."""
        if self.closed:
            return
        self.closed = True
        close_reason = reason.encode()[:_REASON_BYTES_MAX].decode("utf-8", "ignore")
        with suppress(
            OSError, RuntimeError, TimeoutError
        ):  # the client closed first, or is unreachable
            async with asyncio.timeout(_CLOSE_S):
                await self._send({"type": "websocket.close", "code": code, "reason": close_reason})
