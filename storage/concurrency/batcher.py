"""Request coalescing: requests that arrive during a statement leave together in the next.

The counterpart of the hot tier's pipeline in front of Postgres: group commit, one commit to disk for all of them. Each
request gets its own result; when the statement fails, all that shared it get the error.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from storage.concurrency.tasks import end, give
from storage.domain import limits
from storage.domain.errors import MillstreamError, StorageBusy

Request = TypeVar("Request")
Result = TypeVar("Result")

Flush = Callable[[Sequence[Request]], Awaitable[Sequence[Result | MillstreamError]]]
"""Returns the results of all requests, in their order."""


class Batcher(Generic[Request, Result]):
    """Batcher of one kind of request, with at most one statement at a time.

    `when_idle` is called when no request waits any longer.
    """

    def __init__(
        self,
        flush: Flush[Request, Result],
        *,
        batch_max: int = limits.GROUP_BATCH_CALLS_MAX,
        backlog_max: int = limits.GROUP_BACKLOG_MAX,
        when_idle: Callable[[], object] = lambda: None,
    ) -> None:
        self._flush = flush
        self._when_idle = when_idle
        self._batch_max = batch_max
        self._backlog_max = backlog_max
        self._waiting: list[tuple[Request, asyncio.Future[Result]]] = []
        self._working: asyncio.Task[None] | None = None

    async def submit(self, request: Request) -> Result:
        """Submit a request and return its result.

        Raises the request's error, and StorageBusy when too many wait. The request of a caller that gives up before it leaves is
        dropped.
        """
        if len(self._waiting) >= self._backlog_max:
            raise StorageBusy("Too many callers are waiting for Postgres.")
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, done))
        if self._working is None:
            self._working = asyncio.create_task(self._work())
        return await done

    async def close(self) -> None:
        """Stop; waiting callers are cancelled."""
        if self._working is not None:
            await end(self._working)
        for _, done in self._waiting:
            done.cancel()

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = (
                    self._waiting[: self._batch_max],
                    self._waiting[self._batch_max :],
                )
                await self._flush_batch([one for one in batch if not one[1].done()])
        finally:
            self._working = None
            self._when_idle()

    async def _flush_batch(self, batch: Sequence[tuple[Request, "asyncio.Future[Result]"]]) -> None:
        try:
            results = await self._flush([request for request, _ in batch]) if batch else []
        except asyncio.CancelledError:
            for _, done in batch:
                done.cancel()
            raise
        except Exception as error:
            results = [error] * len(batch)  # type: ignore[list-item]
        for (_, done), result in zip(batch, results, strict=True):
            give(done, result)
