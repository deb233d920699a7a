"""One socket: frames out in order, and how long it has been stuck."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from starlette.types import Send

from api.websocket.codec import Wire
from api.websocket.frames import Bye, ServerFrame, is_worth_coming_back

_CLOSE_S = 1.0  # closing waits behind what a slow client has not read; then the connection is cut
_REASON_BYTES_MAX = 123  # of a close frame


class SocketGone(Exception):
    """The socket takes no more."""


class Connection:
    """The sending side of a WebSocket. Its frames go out in the order in which they were sent."""

    __slots__ = (
        "_clock",
        "_send",
        "_sending",
        "_waiting_bytes",
        "abort",
        "address",
        "closed",
        "heard_s",
        "held_in",
        "opened_s",
        "pinged_s",
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
        self.held_in: str | None = None
        """The namespace whose place it has."""
        self.address = ""
        """Of its other end."""
        self.opened_s = self.heard_s = clock()
        self.pinged_s: float | None = None
        self.stuck_s: float | None = None
        """Since when something waits to be sent; None while nothing does."""

    @property
    def waiting_bytes(self) -> int:
        """Of frames that the socket has not taken yet."""
        return self._waiting_bytes

    def heard(self) -> None:
        """Something came from the client: it is there."""
        self.heard_s = self._clock()
        self.pinged_s = None

    async def send(self, frame: ServerFrame) -> None:
        """Send a frame. Raises SocketGone."""
        await self.send_bytes(self.wire.encode(frame))

    async def send_bytes(self, payload: bytes) -> None:
        """Send an encoded frame; waits while the client reads too slowly. Raises SocketGone."""
        if self.closed:
            raise SocketGone
        if self.stuck_s is None:
            self.stuck_s = self._clock()
        self._sending += 1
        self._waiting_bytes += len(payload)
        try:
            if self.wire.binary:
                await self._send({"type": "websocket.send", "bytes": payload})
            else:
                await self._send({"type": "websocket.send", "text": payload.decode()})
        except (OSError, RuntimeError):  # gone, or closed meanwhile
            self.closed = True
            raise SocketGone from None
        finally:
            self._sending -= 1
            self._waiting_bytes -= len(payload)
            self.stuck_s = self._clock() if self._sending else None

    async def close(self, code: int, reason: str) -> None:
        """Say why, and close; in bounded time, whether the client reads or not."""
        await self.say_bye(code, reason)
        await self.close_only(code, reason)

    async def say_bye(self, code: int, reason: str, after_ms: int = 0) -> None:
        """Tell why the socket is about to be closed, and whether to come back."""
        bye = Bye(code, reason, is_worth_coming_back(code), after_ms / 1000)
        with suppress(SocketGone, TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await self.send(bye)

    async def close_only(self, code: int, reason: str) -> None:
        """Close without a word."""
        if self.closed:
            return
        self.closed = True
        told = reason.encode()[:_REASON_BYTES_MAX].decode("utf-8", "ignore")
        with suppress(OSError, RuntimeError, TimeoutError):  # it went first, or cannot be told
            async with asyncio.timeout(_CLOSE_S):
                await self._send({"type": "websocket.close", "code": code, "reason": told})
