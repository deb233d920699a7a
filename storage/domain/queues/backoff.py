"""Back-off: delay of a message after a failure when its consumer specifies none.

    delay(n) = jitter(min(max, f(n))), where n is the number of failures so far

`storage/redis/scripts/lib/backoff.lua` computes it, in the script that settles the delivery.
"""

from enum import StrEnum

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault


class BackoffKind(StrEnum):
    """Growth function f(n) of the delay after the nth failure.

    fixed: initial. linear: initial * n. exponential: initial * multiplier^(n-1). list: the nth of
    `delays_ms`, or its last.
    """

    FIXED = "fixed"
    LINEAR = "linear"
    EXPONENTIAL = "exponential"
    LIST = "list"


class Jitter(StrEnum):
    """Random part of the delay.

    none: the delay itself. full: between 0 and the delay. equal: half the delay plus between 0 and the
    other half.
    """

    NONE = "none"
    FULL = "full"
    EQUAL = "equal"


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Back-off policy of a queue. Times in milliseconds."""

    kind: BackoffKind = BackoffKind.EXPONENTIAL
    initial_ms: int = limits.SECOND_MS
    multiplier: float = 2.0
    max_ms: int = 15 * limits.MINUTE_MS
    delays_ms: tuple[int, ...] = ()
    jitter: Jitter = Jitter.FULL

    def faults(self) -> list[FieldFault]:
        """Return the policy's validation faults."""
        longest = limits.VISIBILITY_TIMEOUT_MS_MAX
        field_faults = [
            FieldFault(
                f"/backoff/{name}", f"must be 0 to {longest // limits.SECOND_MS}", "out_of_range"
            )
            for name, value in (("initial_seconds", self.initial_ms), ("max_seconds", self.max_ms))
            if not 0 <= value <= longest
        ]
        if not 1 <= self.multiplier <= limits.BACKOFF_MULTIPLIER_MAX:
            detail = f"must be 1 to {limits.BACKOFF_MULTIPLIER_MAX}"
            field_faults.append(FieldFault("/backoff/multiplier", detail, "out_of_range"))
        has_list = 1 <= len(self.delays_ms) <= limits.BACKOFF_DELAYS_MAX
        in_range = all(0 <= delay <= longest for delay in self.delays_ms)
        if self.kind is BackoffKind.LIST and not (has_list and in_range):
            detail = f"1 to {limits.BACKOFF_DELAYS_MAX} delays of at most 12 hours"
            field_faults.append(FieldFault("/backoff/delays_seconds", detail, "out_of_range"))
        return field_faults
