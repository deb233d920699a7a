"""How fast a replay goes: as its owner asks, and no faster than live traffic bears. Rules without a clock.

Three things slow it down. A rate in records or bytes is one for the whole replay, whoever sends: see
`storage.redis.counters.pacing`. A speed sends records in the rhythm in which they arrived once, N times as fast. And a
replay watches how long its own appends take, and how far the target's readers are behind.
"""

from collections import deque
from collections.abc import Iterable

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault


class Pacing(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay's owner asks for; None: as fast as it goes. `lag_records_max`: it waits while a consumer group
    of the target stream, or the target queue, has more than that to do."""

    records_per_second: float | None = None
    bytes_per_second: float | None = None
    speed: float | None = None
    lag_records_max: int | None = None

    def faults(self) -> list[FieldFault]:
        """What is wrong with it."""
        bounds = (
            ("records_per_second", self.records_per_second, limits.REPLAY_RATE_MAX),
            ("bytes_per_second", self.bytes_per_second, limits.REPLAY_BYTES_RATE_MAX),
            ("speed", self.speed, limits.REPLAY_SPEED_MAX),
        )
        found = [
            FieldFault(f"/pacing/{name}", f"must be above 0, to {most:g}", "out_of_range")
            for name, value, most in bounds
            if value is not None and not 0 < value <= most
        ]
        if self.lag_records_max is not None and self.lag_records_max < 0:
            found.append(FieldFault("/pacing/lag_records_max", "must be at least 0"))
        return found

    @property
    def batch_records_max(self) -> int:
        """How many records go at once: a fraction of a second's worth, so that a slow replay does not come in
        bursts."""
        if self.records_per_second is None:
            return limits.REPLAY_BATCH_RECORDS
        wanted = int(self.records_per_second * limits.REPLAY_BATCH_SECONDS)
        return max(1, min(limits.REPLAY_BATCH_RECORDS, wanted))

    @property
    def batch_bytes_max(self) -> int:
        """As batch_records_max, in bytes."""
        if self.bytes_per_second is None:
            return limits.REPLAY_BATCH_BYTES
        wanted = int(self.bytes_per_second * limits.REPLAY_BATCH_SECONDS)
        return max(1, min(limits.REPLAY_BATCH_BYTES, wanted))

    def seconds_for(self, records: int, size_bytes: int, span_ms: int) -> float | None:
        """How long a replay of so much takes at the least, which arrived over so long; None: as it goes."""
        asked = [
            records / self.records_per_second if self.records_per_second else 0.0,
            size_bytes / self.bytes_per_second if self.bytes_per_second else 0.0,
            span_ms / limits.SECOND_MS / self.speed if self.speed else 0.0,
        ]
        return max(asked) or None


class ReplaySpeed(msgspec.Struct, frozen=True):
    """Records are sent as they arrived, `speed` times as fast: what arrived at `arrival_ms` is due at `begun_ms`."""

    arrival_ms: int
    begun_ms: int
    speed: float

    def due_ms(self, arrival_ms: int) -> int:
        """When a record that arrived then is to be sent."""
        return self.begun_ms + int(max(0, arrival_ms - self.arrival_ms) / self.speed)


class AdaptiveThrottle:
    """Slows down while appends take long, and catches up slowly: others may be why they do."""

    def __init__(self, latency_ms_max: float = limits.REPLAY_LATENCY_MS_MAX) -> None:
        self._most = latency_ms_max
        self._took: deque[float] = deque(maxlen=limits.REPLAY_LATENCIES)
        self.pause_ms = 0.0

    def note(self, took_ms: float) -> float:
        """An append took so long; how long to pause before the next."""
        self._took.append(took_ms)
        if p95(self._took) > self._most:
            longer = max(limits.REPLAY_PAUSE_MS_MIN, 2 * self.pause_ms)
            self.pause_ms = min(limits.REPLAY_PAUSE_MS_MAX, longer)
        elif self.pause_ms < limits.REPLAY_PAUSE_MS_MIN:
            self.pause_ms = 0.0
        else:
            self.pause_ms *= limits.REPLAY_PAUSE_EASES
        return self.pause_ms


def p95(values: Iterable[float]) -> float:
    """The value that at most one in twenty exceeds; 0 of none."""
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) * 19 // 20] if ordered else 0.0
