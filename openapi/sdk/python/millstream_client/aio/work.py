"""Queue workers with coroutines."""

from collections.abc import Awaitable, Callable
from typing import Any

from millstream_client.aio.messages import AsyncMessage
from millstream_client.aio.transport import AsyncTransport
from millstream_client.messages import Delivery, Settled, Settlement, acknowledgement
from millstream_client.working import Pace, Work, stopped_by_signals

AsyncHandler = Callable[[AsyncMessage], Awaitable[Any]]


class AsyncWorker:
    """Worker of a queue. It can run once."""

    def __init__(self, queue: "AsyncWorking", handler: AsyncHandler, pace: Pace) -> None:
        self._queue = queue
        self._handler = handler
        self._work = Work(queue.transport, queue.name, self._handle, pace)

    async def run(self, *, signals: bool = True) -> None:
        """Work until the worker is stopped, also by SIGTERM or SIGINT if `signals` is set.

        Raises MillstreamError if the queue was deleted or cannot be read.
        """
        async with stopped_by_signals(self.stop, signals):
            await self._work.run()

    def stop(self) -> None:
        """Stop receiving, finish the messages in progress, and end."""
        self._work.stop()

    async def _handle(self, delivery: Delivery) -> Settlement | None:
        message = AsyncMessage(delivery, self._queue)
        value = await self._handler(message)
        return None if message.settled else acknowledgement(delivery, value)


class AsyncWorking:
    """Worker methods of a queue."""

    transport: AsyncTransport
    name: str

    async def settle_one(self, settlement: Settlement) -> Settled:
        """Settle one delivery. Raises ItemRefused."""
        raise NotImplementedError

    def worker(
        self,
        handler: AsyncHandler,
        *,
        concurrency: int = 1,
        lease_seconds: float = 30.0,
        grace_seconds: float = 25.0,
    ) -> AsyncWorker:
        """Return a worker that is not running yet: see `work`."""
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
        """Pass messages to `handler`, a limited number concurrently, until SIGTERM or SIGINT.

        A message is acknowledged when the handler returns and negatively acknowledged when it raises; `Retry(delay_seconds)` and
        `Reject(reason)` give more control. If the message is a request, what the handler returns is the reply to it, unless it is
        None. Messages in progress stay hidden, up to `lease_seconds` after the worker ends.
        """
        worker = self.worker(
            handler,
            concurrency=concurrency,
            lease_seconds=lease_seconds,
            grace_seconds=grace_seconds,
        )
        await worker.run(signals=signals)
