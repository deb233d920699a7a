"""Exit stack whose closing is bounded in time."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

_CLOSE_S = 10.0


@asynccontextmanager
async def closing_in_time() -> AsyncGenerator[AsyncExitStack]:
    """Open an exit stack whose closing is bounded in time.

    What does not end in time is cancelled, and the rest still closes.
    """
    stack = AsyncExitStack()
    try:
        yield stack
    finally:
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await stack.aclose()
