"""Generic cell rate algorithm (GCRA) with leased tokens.

A rate is kept in one number, the time at which everything that has passed so far is paid for.

                    now                      paid until
    ────────────────┼────────────────────────────┼───────────▶ time
                    ◀───────── debt ─────────────▶◀─ room ─▶│
                    ◀──────────────── burst ────────────────▶

Each unit costs the time that the rate gives it. Debt is never more than a bucket holds; room is what may pass now.
`lease_rate.lua` does the same, for many processes together; `TokenLease` is what one of them has taken and not spent.

    store: debt grows by what processes take          process: `tokens` fall by what its calls cost
           a tenth of a second's worth at a time               a second later what remains is void

So what passes in any w seconds is at most rate x (w + burst_seconds), and for each process a lease's worth that it
had taken before. What is taken and not spent is lost to others; a process whose leases run out of time takes no
more than its calls need, so it is at most a lease's worth for each process and second, and little as a rule.
"""

from collections.abc import Sequence
from math import ceil, floor

from storage.domain import limits

_SECOND_US = 1_000_000
_ROUNDING = 1e-6  # of a unit: a double's rounding error does not count against a caller


def grant(
    paid_until_us: float, now_us: float, unit_us: float, holds_us: float, least: int, most: int
) -> tuple[int, float]:
    """Return how many units pass, and until when everything is then paid for.

    At most `most` units, and none if fewer than `least` can pass: with a part of what they need, callers would keep one
    another from ever having enough. A time that lies further ahead than a bucket can be in debt results from a clock that
    was set back.
    """
    begins = min(max(paid_until_us, now_us), now_us + holds_us)
    capacity = floor((now_us + holds_us - begins) / unit_us + _ROUNDING)
    granted = min(most, capacity) if capacity >= least else 0
    return granted, begins + granted * unit_us


class TokenLease:
    """One process's lease of one measure of a policy, and its knowledge of the rest.

    `burst`: the most that passes in one burst; at least one unit, or nothing ever would.
    """

    __slots__ = (
        "_ahead",
        "_debt_us",
        "_initial",
        "_seen_ms",
        "burst",
        "burst_us",
        "expires_ms",
        "share",
        "tokens",
        "unit_us",
    )

    def __init__(self, rate: float, burst_seconds: float) -> None:
        self.unit_us = _SECOND_US / rate
        self.burst_us = max(_SECOND_US * burst_seconds, self.unit_us)
        self.burst = floor(self.burst_us / self.unit_us + _ROUNDING)
        self.share = min(floor(rate * limits.LEASE_SHARE_SECONDS), self.burst)
        self.tokens = 0
        self.expires_ms = 0
        self._ahead = 0  # of the share: units leased beyond what calls need
        self._initial = 0  # units left when the lease began
        self._debt_us = 0.0
        self._seen_ms = 0

    def has(self, units: int, now_ms: int) -> bool:
        """Return whether `units` can be spent without asking the store."""
        return units <= self.tokens and (not units or now_ms < self.expires_ms)

    def units_to_request(self, units: Sequence[int], now_ms: int) -> tuple[int, int]:
        """Return (least, most) units to request from the store for waiting calls.

        `least` is what the smallest call needs to pass; `most` lets all pass, and the next ones without a request.

        A lease that is used up in its time makes the next one twice as large; after one that was not, the next has
        what was spent of it. Without units nothing is requested.
        """
        needed = [some for some in units if some]
        if not needed:
            return 0, 0
        together = sum(needed)
        used_up = now_ms < self.expires_ms
        ahead = 2 * max(self._ahead, together) if used_up else self._initial - self.tokens
        self._ahead = max(0, min(ahead, self.share))
        left = self._tokens_at(now_ms)
        return max(0, min(needed) - left), max(0, together - left) + self._ahead

    def granted(self, units: int, debt_us: float, now_ms: int) -> None:
        """Record the store's response to a request made at `now_ms`."""
        self.tokens = self._initial = self._tokens_at(now_ms) + units
        self.expires_ms = now_ms + limits.LEASE_MS
        self._debt_us = debt_us
        self._seen_ms = now_ms

    def retry_after_ms(self, units: int, now_ms: int) -> int:
        """Return the time in ms until `units` could pass, if no other process took any.

        A lower bound, so that 0 means to ask the store.
        """
        missing = units - self._tokens_at(now_ms)
        wait_us = self._debt_at(now_ms) + missing * self.unit_us - self.burst_us
        return max(0, ceil(wait_us / limits.SECOND_MS - _ROUNDING)) if missing > 0 else 0

    def remaining(self, now_ms: int) -> int:
        """Return the units that could pass now, as far as this process knows."""
        return self._capacity_at(now_ms) + self._tokens_at(now_ms)

    def reset_s(self, now_ms: int) -> int:
        """Return the time until the debt is paid, in whole seconds."""
        return ceil(self._debt_at(now_ms) / _SECOND_US)

    def is_low(self, now_ms: int) -> bool:
        """Return whether little is left for all processes."""
        return self._capacity_at(now_ms) < limits.LOW_SHARE * self.burst

    def _capacity_at(self, now_ms: int) -> int:
        capacity = floor((self.burst_us - self._debt_at(now_ms)) / self.unit_us + _ROUNDING)
        return max(0, capacity)

    def _tokens_at(self, now_ms: int) -> int:
        return self.tokens if now_ms < self.expires_ms else 0

    def _debt_at(self, now_ms: int) -> float:
        return max(0.0, self._debt_us - max(0, now_ms - self._seen_ms) * limits.SECOND_MS)
