"""Waiting for what takes a moment."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

T = TypeVar("T")

WITHIN_S = 20.0
PAUSE_S = 0.01


async def eventually(reading: Callable[[], Awaitable[T]], wanted: T) -> None:
    """Wait until the reading gives what is wanted."""
    found = await reading()
    deadline = asyncio.get_running_loop().time() + WITHIN_S
    while found != wanted:
        if asyncio.get_running_loop().time() > deadline:
            pytest.fail(f"not {wanted!r}, still {found!r}")
        await asyncio.sleep(PAUSE_S)
        found = await reading()
