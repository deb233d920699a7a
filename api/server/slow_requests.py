"""Requests that have not come whole: who sends them byte by byte must not keep a connection for ever.

Only connections that wait for the rest of a request are here, and one timer of the process looks at all of them, so
that a request that comes in one piece, and a connection that rests, cost nothing.
"""

import asyncio
from functools import partial
from typing import Protocol

from storage.domain import limits

_LOOK_S = limits.UNFINISHED_LOOK_MS / limits.SECOND_MS


class Paced(Protocol):
    """A connection that must get on."""

    def check_pace(self, now_s: float) -> None:
        """Close it if it does not; `now_s` is the loop's time."""
        ...


class SlowRequestMonitor:
    """The connections of a process that wait for the rest of a request."""

    def __init__(self) -> None:
        self._waiting: dict[Paced, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, connection: Paced, loop: asyncio.AbstractEventLoop) -> None:
        """It waits from now on."""
        self._waiting[connection] = None
        if self._timer is None:
            self._timer = loop.call_later(_LOOK_S, partial(self._look, loop))

    def discard(self, connection: Paced) -> None:
        """It has what it waited for, or is gone."""
        self._waiting.pop(connection, None)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        for connection in list(self._waiting):
            connection.check_pace(loop.time())
        again = bool(self._waiting)
        self._timer = loop.call_later(_LOOK_S, partial(self._look, loop)) if again else None


def may_take_s(received: int, *, has_head: bool) -> float:
    """How long a request may take of which so many bytes have come."""
    head_s = limits.HEAD_MS_MAX / limits.SECOND_MS
    if not has_head:
        return head_s
    return (
        head_s + limits.BODY_MS_MAX / limits.SECOND_MS + received / limits.BODY_BYTES_PER_SECOND_MIN
    )
