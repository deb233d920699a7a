"""uvicorn's program with a server that is woken when it has to end, rather than polling.

Relies on `Server.main_loop`, `on_tick`, `handle_exit` and `shutdown` of uvicorn, and that its command line makes the server
from the name `Server` of `uvicorn.main`; `tests/unit/http/test_uvicorn_server.py` has a test of each.
"""

import asyncio
import os
import socket
import sys
from contextlib import suppress
from types import FrameType
from typing import Any

import uvicorn

from storage.concurrency.periodic import pause_seconds

_TICK_S = 1.0
_WATCH_S = 0.1
_TICKS = 10  # of uvicorn's in one of ours: the Date header is renewed with each tenth


class WokenServer(uvicorn.Server):
    """Server that ticks once a second, and at once when a signal asks it to end."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = asyncio.Event()

    async def main_loop(self) -> None:
        """Run until the server has to end."""
        self._loop = asyncio.get_running_loop()
        tick = 0
        while not await self.on_tick(tick):
            tick += _TICKS
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_seconds(_TICK_S, self._loop.time())):
                    await self._woken.wait()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal that asks the server to end."""
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._woken.set)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down all connections, including those established in the meantime.

        uvicorn asks only the connections that it knows at the beginning. Others, and the upgrades of any, would last until its
        grace period ends. It also keeps the socket open that it listens on, if that was inherited: the kernel would go on
        accepting connections.
        """
        if self.config.fd is not None:
            os.close(self.config.fd)
        notified = set(self.server_state.connections)
        watch_task = asyncio.create_task(self._shut_down_others(notified))
        try:
            await super().shutdown(sockets)
        finally:
            watch_task.cancel()

    async def _shut_down_others(self, notified: set[Any]) -> None:
        while True:
            await asyncio.sleep(_WATCH_S)
            others = self.server_state.connections - notified
            for connection in others:
                connection.shutdown()
            notified |= others


def main() -> None:
    """Run uvicorn's command line with this server."""
    program = sys.modules["uvicorn.main"]
    program.Server = WokenServer  # type: ignore[attr-defined]
    program.main()


if __name__ == "__main__":
    main()
