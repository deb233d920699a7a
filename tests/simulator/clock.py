"""Clocks of simulated processes, in virtual time."""

import asyncio

from storage.domain.clock import SERVER_TIME, ScriptTime
from tests.simulator.hot_server import START_MS


class VirtualClock:
    """The clock of a machine, `offset_ms` ahead of the others; scripts use their server's."""

    def __init__(self, offset_ms: int = 0) -> None:
        self._offset_ms = offset_ms

    def now_ms(self) -> int:
        return START_MS + self._offset_ms + int(asyncio.get_running_loop().time() * 1000)

    def script_time(self) -> ScriptTime:
        return SERVER_TIME
