"""Waiting for a condition."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

T = TypeVar("T")

PATIENCE_S = 60.0
"""Seconds until a test gives up. Only one that fails takes so long; a busy machine takes ten times what a quiet one does."""

SPARK_S = 240.0
"""Seconds until a test gives up where Spark starts first."""

PAUSE_S = 0.01


async def eventually(
    read: Callable[[], Awaitable[T]], expected: T, within_s: float = PATIENCE_S
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
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it is still not so"
        time.sleep(PAUSE_S)
