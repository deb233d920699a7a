"""Waiting."""

import asyncio
from collections.abc import Awaitable, Callable

AsyncSleep = Callable[[float], Awaitable[None]]

sleep: AsyncSleep = asyncio.sleep
