"""Retry with exponential backoff while a subscription's source is unavailable.

The client is notified once.
"""

import asyncio

from api.websocket.frames import Paused, Resumed
from api.websocket.session import Session
from storage.domain import limits
from storage.domain.errors import ErrorCode, MillstreamError

STORAGE = "storage"
QUEUE = "queue"


class RetryBackoff:
    """Backoff state of one subscription."""

    __slots__ = ("_pause_ms", "_session", "_sub", "_told")

    def __init__(self, session: Session, sub: str) -> None:
        self._session = session
        self._sub = sub
        self._told = ""
        self._pause_ms = limits.PUSH_BACKOFF_MS_MIN

    async def outlived(self, error: MillstreamError) -> bool:
        """Wait out the backoff and return whether to retry. Raises SocketGone."""
        if not error.code.retryable:
            return False
        if error.code is not ErrorCode.IN_FLIGHT_LIMIT_REACHED:  # ended by the client's own acks
            await self.begun(STORAGE)
        await asyncio.sleep(self._pause_ms / limits.SECOND_MS)
        self._pause_ms = min(self._pause_ms * 2, limits.PUSH_BACKOFF_MS_MAX)
        return True

    async def begun(self, reason: str) -> None:
        """Notify the client that delivery is paused. Raises SocketGone."""
        if not self._told:
            self._told = reason
            await self._session.send(Paused(self._sub, reason))

    async def over(self, reason: str = STORAGE) -> None:
        """Reset the backoff; notify the client if delivery was paused for this reason.

        Raises SocketGone.
        """
        self._pause_ms = limits.PUSH_BACKOFF_MS_MIN
        if self._told == reason:
            self._told = ""
            await self._session.send(Resumed(self._sub))
