"""Circuit breaker, rate limit and throttle of a webhook: when the next delivery may go.

The rules have no clock: every verb is given the time.

rate       a number a second, evenly
throttle   a receiver that asks for less is left alone for as long as it asks, or 1 s, 2 s, 4 s … 60 s
breaker    closed ──10 failures in a row──▶ open for 10 s … 10 min ──▶ half open: one goes ──▶ closed, or open again
"""

import math

from storage.domain import limits
from storage.domain.webhooks import Attempt, AttemptOutcome

_LATE_MS = 10


class CircuitBreaker:
    """The rules of one webhook."""

    def __init__(self, rate: float | None) -> None:
        self._gap_ms = 0.0 if rate is None else limits.SECOND_MS / rate
        self._next_ms = 0.0
        self._shut_until_ms = 0
        self._throttles = 0
        self._failures = 0
        self._openings = 0
        self._probing = False

    @property
    def is_half_open(self) -> bool:
        """Return whether the breaker is half open: one delivery goes as a probe, and no other."""
        return self._openings > 0

    def wait_ms(self, now_ms: int) -> int | None:
        """Return the time in ms until a delivery may go; 0 for now.

        None: not before the one in flight has finished.
        """
        if self._openings and self._probing:
            return None
        until_ms = max(self._next_ms, self._shut_until_ms)
        return max(0, math.ceil(until_ms - now_ms))

    def record_start(self, now_ms: int) -> None:
        """Record that a delivery goes.

        A clock that ticks in milliseconds, and a late event loop, do not reduce the rate.
        """
        self._next_ms = max(self._next_ms, now_ms - _LATE_MS) + self._gap_ms
        self._probing = self._openings > 0

    def record_result(self, attempt: Attempt | None, now_ms: int) -> None:
        """Record the outcome of a delivery; None if it does not concern the receiver."""
        self._probing = False
        if attempt is None:
            return
        if attempt.succeeded:
            self._throttles = self._failures = self._openings = 0
            return
        self._failures += 1
        if attempt.outcome is AttemptOutcome.THROTTLED or attempt.wait_ms:
            self._throttle(attempt.wait_ms, now_ms)
        if self._failures >= limits.WEBHOOK_BREAKER_FAILURES or self._openings:
            self._open(now_ms)

    def _throttle(self, asked_ms: int | None, now_ms: int) -> None:
        """Throttle; deliveries that were in flight together count once."""
        if now_ms < self._shut_until_ms and asked_ms is None:
            return
        own_ms = _doubled(
            limits.WEBHOOK_THROTTLE_MS_MIN, self._throttles, limits.WEBHOOK_THROTTLE_MS_MAX
        )
        self._throttles += 1
        wait_ms = own_ms if asked_ms is None else asked_ms
        self._shut_until_ms = max(self._shut_until_ms, now_ms + wait_ms)

    def _open(self, now_ms: int) -> None:
        if now_ms < self._shut_until_ms and self._openings:
            return
        wait_ms = _doubled(
            limits.WEBHOOK_BREAKER_MS_MIN, self._openings, limits.WEBHOOK_BREAKER_MS_MAX
        )
        self._openings += 1
        self._shut_until_ms = max(self._shut_until_ms, now_ms + wait_ms)


def _doubled(first_ms: int, times: int, most_ms: int) -> int:
    return int(min(first_ms * 2 ** min(times, 30), most_ms))
