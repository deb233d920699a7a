"""Clocks, passed in as arguments.

Rules take `now_ms`; shells take a `Clock`. Inside Redis the scripts use the server's own TIME unless
a caller passes a number, which only tests do: see `ScriptTime`.
"""

import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol

ScriptTime = str
"""`now_ms` as a script argument: decimal milliseconds, or empty for the server's own time."""

SERVER_TIME: ScriptTime = ""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """Milliseconds since the Unix epoch, and their form as a script argument."""

    def now_ms(self) -> int: ...

    def script_time(self) -> ScriptTime: ...


class SystemClock:
    """The machine's clock; scripts use their server's, so that all processes agree."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def script_time(self) -> ScriptTime:
        return SERVER_TIME


class ManualClock:
    """Clock for tests that advances only on request."""

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = start_ms

    def now_ms(self) -> int:
        return self._now_ms

    def script_time(self) -> ScriptTime:
        return str(self._now_ms)

    def advance(self, ms: int) -> None:
        self._now_ms += ms


@lru_cache(maxsize=4096)
def rfc3339(ms: int) -> str:
    """Format milliseconds since the epoch as `2026-01-31T12:00:00.000Z`."""
    seconds, rest = divmod(ms, 1000)
    return f"{_second(seconds)}.{rest:03d}Z"


@lru_cache(maxsize=1024)
def _second(seconds: int) -> str:
    return (EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
