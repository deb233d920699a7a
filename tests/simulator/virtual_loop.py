"""Event loop in virtual time: it never waits, and the same program takes the same course each time."""

import asyncio
import selectors
from typing import Any


class Stuck(AssertionError):
    """Nothing is ready and nothing is scheduled: the program would wait without end."""


class _VirtualSelector(selectors.DefaultSelector):
    """Selector whose waiting advances the virtual time."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise Stuck("nothing is scheduled")
        self.now_s += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Event loop whose clock moves to the next timer whenever nothing is ready."""

    def __init__(self) -> None:
        self._virtual = _VirtualSelector()
        super().__init__(self._virtual)
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self._virtual.now_s
