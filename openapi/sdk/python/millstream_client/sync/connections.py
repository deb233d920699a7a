"""Asynchronous connection in a thread with an event loop of its own."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Generic, Self, TypeVar

from millstream_client.aio.connections import AsyncConnection
from millstream_client.aio.transport import AsyncTransport
from millstream_client.settings import Options

T = TypeVar("T")
C = TypeVar("C", bound=AsyncConnection[Any])

END_S = 1.0  # that what is under way has when a connection is closed


class Connection(Generic[C]):
    """Connection for programs without an event loop. Use it once, `with`; threads can share it."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._inner: C | None = None

    def _make(self, transport: AsyncTransport) -> C:
        """Return the asynchronous connection."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        opening = asyncio.run_coroutine_threadsafe(self._open(), self._loop)
        try:
            self._inner = opening.result()
        except BaseException:
            opening.cancel()  # a signal ends the wait, not what was waited for
            try:
                self._run(_wait_for_others())
            finally:
                self._end()
            raise
        return self

    async def _open(self) -> C:
        self._transport = AsyncTransport(self._options)
        try:
            return await self._make(self._transport).__aenter__()
        except BaseException:
            await self._transport.aclose()
            raise

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._inner is not None:
            inner, self._inner = self._inner, None
            self._run(inner.aclose())
            self._run(self._close_transport())
            self._end()

    async def _close_transport(self) -> None:
        await self._transport.aclose()
        await _wait_for_others()  # a thread may be waiting for one

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def _opened(self) -> C:
        if self._inner is None:
            raise RuntimeError(f"Use the {type(self).__name__} `with`.")
        return self._inner

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def _wait_for_others() -> None:
    """Wait until all other tasks of this loop have ended, but not for long."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others, timeout=END_S)
