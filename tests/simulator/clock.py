"""Virtual time as the wall clock of every simulated machine."""

import asyncio

from storage.domain.clock import SERVER_TIME, ScriptTime

START_MS = 1_700_000_000_000


def now_ms() -> int:
    """Return the virtual time as milliseconds since the epoch."""
    return START_MS + int(asyncio.get_running_loop().time() * 1000)


class VirtualClock:
    """The clock of a process; scripts use their server's."""

    def now_ms(self) -> int:
        return now_ms()

    def script_time(self) -> ScriptTime:
        return SERVER_TIME
