"""Monitor of incomplete requests, against slow-loris clients.

A client that sends byte by byte must not keep a connection indefinitely. Only connections that wait for the rest of a
request are monitored, and one timer of the process checks all of them, so that a request that arrives in one piece, and an
idle connection, cost nothing.
"""

import asyncio
from functools import partial
from typing import Protocol

from storage.domain import limits

_CHECK_PERIOD_S = limits.SLOW_REQUEST_CHECK_MS / limits.SECOND_MS


class HasDeadline(Protocol):
    """A connection that must make progress."""

    def check_deadline(self, now_s: float) -> None:
        """Close it if it is too slow; `now_s` is the loop's time."""
        ...


class SlowRequestMonitor:
    """The connections of a process that wait for the rest of a request."""

    def __init__(self) -> None:
        self._waiting: dict[HasDeadline, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, connection: HasDeadline, loop: asyncio.AbstractEventLoop) -> None:
        """Start monitoring a connection."""
        self._waiting[connection] = None
        if self._timer is None:
            self._timer = loop.call_later(_CHECK_PERIOD_S, partial(self._check, loop))

    def discard(self, connection: HasDeadline) -> None:
        """Stop monitoring a connection: its request is complete, or it is closed."""
        self._waiting.pop(connection, None)

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        for connection in list(self._waiting):
            connection.check_deadline(loop.time())
        again = bool(self._waiting)
        self._timer = (
            loop.call_later(_CHECK_PERIOD_S, partial(self._check, loop)) if again else None
        )


def deadline_s(received: int, *, has_head: bool) -> float:
    """Return the maximum duration of a request, in seconds, for the bytes received so far."""
    head_s = limits.HEAD_MS_MAX / limits.SECOND_MS
    if not has_head:
        return head_s
    return (
        head_s + limits.BODY_MS_MAX / limits.SECOND_MS + received / limits.BODY_BYTES_PER_SECOND_MIN
    )
