"""TTL cache that coalesces concurrent loads."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from storage.domain.clock import Clock

V = TypeVar("V")

_KEPT_MAX = 1_000  # results of one process: beyond it the oldest is dropped, and loaded again


class TtlCache(Generic[V]):
    """Cache of results by key with an expiry; concurrent callers share one load."""

    def __init__(self, age_ms: int, clock: Clock) -> None:
        self._age_ms = age_ms
        self._clock = clock
        self._known: dict[Hashable, tuple[int, asyncio.Task[V]]] = {}

    async def get(self, question: Hashable, read: Callable[[], Awaitable[V]]) -> V:
        """Return the cached result, or load it with `read`.

        An error of `read` is raised to all who wait, and the next caller loads again.
        """
        now_ms = self._clock.now_ms()
        asked_ms, answer = self._known.get(question, (0, None))
        if (
            answer is None
            or now_ms - asked_ms >= self._age_ms
            or now_ms < asked_ms
            or _failed(answer)
        ):
            self._known.pop(question, None)
            answer = asyncio.ensure_future(_awaited(read))
            self._known[question] = now_ms, answer
            if len(self._known) > _KEPT_MAX:
                del self._known[next(iter(self._known))]
        return await asyncio.shield(answer)


async def _awaited(read: "Callable[[], Awaitable[V]]") -> V:
    return await read()


def _failed(answer: "asyncio.Task[V]") -> bool:
    return answer.done() and (answer.cancelled() or answer.exception() is not None)
