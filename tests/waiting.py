"""Waiting for a condition."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

T = TypeVar("T")

WITHIN_S = 20.0
PAUSE_S = 0.01


async def eventually(reading: Callable[[], Awaitable[T]], wanted: T) -> None:
    """Wait until the reading equals the wanted value."""
    found = await reading()
    deadline = asyncio.get_running_loop().time() + WITHIN_S
    while found != wanted:
        if asyncio.get_running_loop().time() > deadline:
            pytest.fail(f"not {wanted!r}, still {found!r}")
        await asyncio.sleep(PAUSE_S)
        found = await reading()


def until(holds: Callable[[], bool]) -> None:
    """Wait for a condition, without an event loop."""
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline, "it is still not so"
        time.sleep(PAUSE_S)
