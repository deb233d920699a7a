"""Working on a queue with a coroutine."""

from collections.abc import Awaitable, Callable
from typing import Any

from millstream_client.aio.messages import AsyncMessage
from millstream_client.aio.transport import AsyncTransport
from millstream_client.messages import Delivery, Settled, Settlement
from millstream_client.working import Pace, Work, stopped_by_signals

AsyncHandler = Callable[[AsyncMessage], Awaitable[Any]]


class AsyncWorker:
    """Works on a queue while it runs; it runs once."""

    def __init__(self, queue: "AsyncWorking", handler: AsyncHandler, pace: Pace) -> None:
        self._queue = queue
        self._handler = handler
        self._work = Work(queue.transport, queue.name, self._handle, pace)

    async def run(self, *, signals: bool = True) -> None:
        """Work until it is stopped, by SIGTERM or SIGINT too if `signals`. Raises MillstreamError when the queue is
        gone, or may not be read."""
        async with stopped_by_signals(self.stop, signals):
            await self._work.run()

    def stop(self) -> None:
        """Take no more, finish what is in hand, and end."""
        self._work.stop()

    async def _handle(self, delivery: Delivery) -> bool:
        message = AsyncMessage(delivery, self._queue)
        await self._handler(message)
        return message.settled


class AsyncWorking:
    """What a queue has for working on it."""

    transport: AsyncTransport
    name: str

    async def settle_one(self, settlement: Settlement) -> Settled:
        """Give a verdict. Raises ItemRefused."""
        raise NotImplementedError

    def worker(
        self,
        handler: AsyncHandler,
        *,
        concurrency: int = 1,
        lease_seconds: float = 30.0,
        grace_seconds: float = 25.0,
    ) -> AsyncWorker:
        """A worker that is not running yet: see `work`."""
        return AsyncWorker(self, handler, Pace(concurrency, lease_seconds, grace_seconds))

    async def work(
        self,
        handler: AsyncHandler,
        *,
        concurrency: int = 1,
        lease_seconds: float = 30.0,
        grace_seconds: float = 25.0,
        signals: bool = True,
    ) -> None:
        """Hand messages to `handler` until SIGTERM or SIGINT, so many at once.

        A message is acknowledged when the handler returns, and negatively when it raises: `Retry(delay_seconds)` and
        `Reject(reason)` say more. While it works the message stays hidden, `lease_seconds` beyond the worker's end.
        """
        worker = self.worker(
            handler,
            concurrency=concurrency,
            lease_seconds=lease_seconds,
            grace_seconds=grace_seconds,
        )
        await worker.run(signals=signals)
