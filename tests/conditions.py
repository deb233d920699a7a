"""Waiting for a condition."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

T = TypeVar("T")

WITHIN_S = 20.0
PAUSE_S = 0.01


async def eventually(
    read: Callable[[], Awaitable[T]], expected: T, within_s: float = WITHIN_S
) -> None:
    """Wait until the reading equals the wanted value."""
    value = await read()
    deadline = asyncio.get_running_loop().time() + within_s
    while value != expected:
        if asyncio.get_running_loop().time() > deadline:
            pytest.fail(f"not {expected!r}, still {value!r}")
        await asyncio.sleep(PAUSE_S)
        value = await read()


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, without an event loop."""
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, "it is still not so"
        time.sleep(PAUSE_S)
