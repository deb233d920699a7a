"""Retry with exponential backoff while a subscription's source is unavailable.

The client is notified once.
"""

import asyncio

from api.websocket.frames import Paused, Resumed
from api.websocket.session import PushSession
from storage.domain import limits
from storage.domain.errors import ErrorCode, MillstreamError

STORAGE = "storage"
QUEUE = "queue"
GROUP = "group"


class RetryBackoff:
    """Backoff state of one subscription."""

    __slots__ = ("_pause_ms", "_paused_for", "_session", "_sub")

    def __init__(self, session: PushSession, sub: str) -> None:
        self._session = session
        self._sub = sub
        self._paused_for = ""
        self._pause_ms = limits.PUSH_BACKOFF_MS_MIN

    async def wait_and_retry(self, error: MillstreamError) -> bool:
        """Wait out the backoff and return whether to retry. Raises SocketClosed."""
        if not error.code.retryable:
            return False
        if error.code is not ErrorCode.IN_FLIGHT_LIMIT_REACHED:  # ended by the client's own acks
            await self.pause(STORAGE)
        await asyncio.sleep(self._pause_ms / limits.SECOND_MS)
        self._pause_ms = min(self._pause_ms * 2, limits.PUSH_BACKOFF_MS_MAX)
        return True

    async def pause(self, reason: str) -> None:
        """Notify the client that delivery is paused. Raises SocketClosed."""
        if not self._paused_for:
            self._paused_for = reason
            await self._session.send(Paused(self._sub, reason))

    async def resume(self, reason: str = STORAGE) -> None:
        """Reset the backoff; notify the client if delivery was paused for this reason.

        Raises SocketClosed.
        """
        self._pause_ms = limits.PUSH_BACKOFF_MS_MIN
        if self._paused_for == reason:
            self._paused_for = ""
            await self._session.send(Resumed(self._sub))
