"""Pacing of a replay: the limits that its owner sets, and yielding to live traffic.

These are rules without a clock. Three things throttle a replay. A rate in records or bytes applies to the whole
replay, whichever worker sends: see `storage.redis.counters.shared_rate`. A speed sends records with the original
timing of their arrivals, N times as fast. And a replay measures the latency of its own appends, and how far the
target's readers are behind.
"""

from collections import deque
from collections.abc import Iterable

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault


class Pacing(msgspec.Struct, frozen=True, kw_only=True):
    """Rate limits set by a replay's owner; None: unlimited.

    `lag_records_max`: the replay waits while a consumer group of the target stream, or the target queue, has a
    larger backlog than this.
    """

    records_per_second: float | None = None
    bytes_per_second: float | None = None
    speed: float | None = None
    lag_records_max: int | None = None

    def faults(self) -> list[FieldFault]:
        """Return the pacing's validation faults."""
        bounds = (
            ("records_per_second", self.records_per_second, limits.REPLAY_RATE_MAX),
            ("bytes_per_second", self.bytes_per_second, limits.REPLAY_BYTES_RATE_MAX),
            ("speed", self.speed, limits.REPLAY_SPEED_MAX),
        )
        field_faults = [
            FieldFault(f"/pacing/{name}", f"must be above 0, to {most:g}", "out_of_range")
            for name, value, most in bounds
            if value is not None and not 0 < value <= most
        ]
        if self.lag_records_max is not None and self.lag_records_max < 0:
            field_faults.append(FieldFault("/pacing/lag_records_max", "must be at least 0"))
        return field_faults

    @property
    def is_unlimited(self) -> bool:
        """Return whether a replay is as fast as it can be."""
        return self == Pacing()

    @property
    def batch_records_max(self) -> int:
        """Batch size in records.

        The records of a fraction of a second, so that a slow replay does not send in bursts.
        """
        if self.records_per_second is None:
            return limits.REPLAY_BATCH_RECORDS
        share = int(self.records_per_second * limits.REPLAY_BATCH_SECONDS)
        return max(1, min(limits.REPLAY_BATCH_RECORDS, share))

    @property
    def batch_bytes_max(self) -> int:
        """Batch size in bytes; see `batch_records_max`."""
        if self.bytes_per_second is None:
            return limits.REPLAY_BATCH_BYTES
        share = int(self.bytes_per_second * limits.REPLAY_BATCH_SECONDS)
        return max(1, min(limits.REPLAY_BATCH_BYTES, share))

    def seconds_for(self, records: int, size_bytes: int, span_ms: int) -> float | None:
        """Return the minimum duration in seconds of a replay of that size; None: no limit applies.

        `span_ms`: the time over which the records arrived.
        """
        durations_s = [
            records / self.records_per_second if self.records_per_second else 0.0,
            size_bytes / self.bytes_per_second if self.bytes_per_second else 0.0,
            span_ms / limits.SECOND_MS / self.speed if self.speed else 0.0,
        ]
        return max(durations_s) or None


class ReplaySpeed(msgspec.Struct, frozen=True):
    """Schedule that preserves the timing of arrivals, `speed` times as fast.

    A record that arrived at `arrival_ms` is due at `begun_ms`.
    """

    arrival_ms: int
    begun_ms: int
    speed: float

    def due_ms(self, arrival_ms: int) -> int:
        """Return when to send a record that arrived at `arrival_ms`."""
        return self.begun_ms + int(max(0, arrival_ms - self.arrival_ms) / self.speed)


class AdaptiveThrottle:
    """Throttle that slows down while appends are slow, and recovers gradually.

    Other traffic may be the reason for the latency.
    """

    def __init__(self, latency_ms_max: float = limits.REPLAY_LATENCY_MS_MAX) -> None:
        self._most = latency_ms_max
        self._took: deque[float] = deque(maxlen=limits.REPLAY_LATENCY_SAMPLES)
        self.pause_ms = 0.0

    def note(self, took_ms: float) -> float:
        """Record an append's duration; return the pause before the next, both in milliseconds."""
        self._took.append(took_ms)
        if p95(self._took) > self._most:
            longer = max(limits.REPLAY_PAUSE_MS_MIN, 2 * self.pause_ms)
            self.pause_ms = min(limits.REPLAY_PAUSE_MS_MAX, longer)
        elif self.pause_ms < limits.REPLAY_PAUSE_MS_MIN:
            self.pause_ms = 0.0
        else:
            self.pause_ms *= limits.REPLAY_PAUSE_DECAY
        return self.pause_ms


def p95(values: Iterable[float]) -> float:
    """Return the value that at most one in twenty exceeds; 0 without values."""
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) * 19 // 20] if ordered else 0.0
