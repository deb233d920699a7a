"""Single-flight: concurrent callers share one call for each key.

    run ──▶ a flight for the key? ─ yes ─▶ wait for it ─────▶ its result or its error, to all who wait
                     └ no ─▶ begin one ──────────▲

A caller that gives up does not end the flight for the others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from storage.concurrency.tasks import end

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Calls of one kind, at most one in progress for each key.

    `len()` is the number of keys with a flight that new callers join.
    """

    def __init__(self) -> None:
        self._flights: dict[K, asyncio.Task[V]] = {}
        self._tasks: dict[asyncio.Task[V], None] = {}  # in order

    def __len__(self) -> int:
        return len(self._flights)

    def __contains__(self, key: K) -> bool:
        return key in self._flights

    async def run(self, key: K, call: Callable[[], Awaitable[V]]) -> V:
        """Return the result of the flight in progress, or of a new one. Raises its error."""
        return await asyncio.shield(self.begin(key, call))

    async def run_fresh(self, key: K, call: Callable[[], Awaitable[V]]) -> V:
        """Return the result of a flight that began after this call. Raises its error."""
        earlier = self._flights.get(key)
        if earlier is not None:
            await asyncio.wait([earlier])
        return await self.run(key, call)

    def begin(self, key: K, call: Callable[[], Awaitable[V]]) -> "asyncio.Task[V]":
        """Return the flight in progress, or begin one. Cancelling it ends it for all callers."""
        task = self._flights.get(key)
        if task is None:
            task = self._flights[key] = asyncio.create_task(_result_of(call))
            self._tasks[task] = None
            task.add_done_callback(lambda done: self._land(key, done))
        return task

    def is_current(self, key: K) -> bool:
        """Return whether the running task is the flight of the key, and was not discarded."""
        return self._flights.get(key) is asyncio.current_task()

    def discard(self, key: K) -> None:
        """Let later callers begin another flight; those that wait get the earlier result."""
        self._flights.pop(key, None)

    def discard_all(self) -> None:
        """Let later callers begin another flight for every key."""
        self._flights = {}

    async def finish(self) -> None:
        """Wait for the flights in progress, however they end."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        """Cancel the flights in progress, and with them the callers that wait."""
        await end(*self._tasks)

    def _land(self, key: K, task: "asyncio.Task[V]") -> None:
        del self._tasks[task]
        if self._flights.get(key) is task:
            del self._flights[key]
        if not task.cancelled():
            task.exception()  # retrieved here in case no caller waits for it


async def _result_of(call: "Callable[[], Awaitable[V]]") -> V:
    return await call()
