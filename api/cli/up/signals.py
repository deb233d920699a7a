"""Ending when told to."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def stop_signal() -> None:
    """Return at the first signal that asks us to end; asked for again, they change nothing."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, told.set)
    await told.wait()


async def until_told_to_stop(work: Coroutine[Any, Any, None]) -> None:
    """Do `work` until it ends or a signal asks us to; then it is cancelled, and its own end awaited."""
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
