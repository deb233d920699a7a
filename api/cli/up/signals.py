"""Shutdown on signals."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def stop_signal() -> None:
    """Wait for the first stop signal; further ones have no effect."""
    received = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, received.set)
    await received.wait()


async def run_until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Run `work` until it ends or a stop signal arrives; then cancel it and wait for its end."""
    working = asyncio.create_task(work)
    stopping = asyncio.create_task(stop_signal())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if working.done():
        working.result()
    await cancel(working)
    await cancel(stopping)


async def cancel(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait until it has ended, however it ends."""
    task.cancel()
    await asyncio.wait([task])
