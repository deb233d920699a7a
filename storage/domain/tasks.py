"""Ending a background task for certain."""

import asyncio

_PATIENCE_S = 0.5


async def end(*tasks: "asyncio.Task[None]") -> None:
    """Cancel tasks and wait until they have ended, however they end.

    A library may swallow a cancellation that meets it at the wrong moment (one that turns it into an error of
    its own, which a loop then survives), so it is said again until it is heard.
    """
    waiting = {task for task in tasks if not task.done()}
    while waiting:
        for task in waiting:
            task.cancel()
        _, waiting = await asyncio.wait(waiting, timeout=_PATIENCE_S)
