"""Working on a queue with a function, in threads. The loop is the asynchronous one."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from millstream_client.aio.transport import AsyncTransport
from millstream_client.messages import Delivery, Settled, Settlement, acknowledgement
from millstream_client.sync.messages import Message
from millstream_client.sync.transport import Transport
from millstream_client.working import Pace, Work, stopped_by_signals

Handler = Callable[[Message], Any]


class Worker:
    """Works on a queue while it runs; it runs once."""

    def __init__(self, queue: "Working", handler: Handler, pace: Pace) -> None:
        self._queue = queue
        self._handler = handler
        self._pace = pace
        self._lock = threading.Lock()
        self._stopped = False
        self._stop_loop: Callable[[], None] | None = None

    def run(self, *, signals: bool = True) -> None:
        """Work until it is stopped, by SIGTERM or SIGINT too if `signals` and this is the main thread. Raises
        MillstreamError when the queue is gone, or may not be read."""
        asyncio.run(self._run(signals))

    def stop(self) -> None:
        """Take no more, finish what is in hand, and end. From any thread."""
        with self._lock:
            self._stopped = True
            if self._stop_loop is not None:
                with suppress(RuntimeError):  # it has ended meanwhile
                    self._stop_loop()

    async def _run(self, signals: bool) -> None:
        loop = asyncio.get_running_loop()
        transport = AsyncTransport(self._queue.transport.options)
        pool = ThreadPoolExecutor(self._pace.concurrency, thread_name_prefix="millstream")

        async def handle(delivery: Delivery) -> Settlement | None:
            message = Message(delivery, self._queue)
            value = await loop.run_in_executor(pool, self._handler, message)
            return None if message.settled else acknowledgement(delivery, value)

        def stop_soon() -> None:
            loop.call_soon_threadsafe(work.stop)

        work = Work(transport, self._queue.name, handle, self._pace)
        with self._lock:
            self._stop_loop = stop_soon
            if self._stopped:
                work.stop()
        try:
            async with stopped_by_signals(work.stop, signals):
                await work.run()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            await transport.aclose()


class Working:
    """What a queue has for working on it."""

    transport: Transport
    name: str

    def settle_one(self, settlement: Settlement) -> Settled:
        """Give a verdict. Raises ItemRefused."""
        raise NotImplementedError

    def worker(
        self,
        handler: Handler,
        *,
        concurrency: int = 1,
        lease_seconds: float = 30.0,
        grace_seconds: float = 25.0,
    ) -> Worker:
        """A worker that is not running yet: see `work`."""
        return Worker(self, handler, Pace(concurrency, lease_seconds, grace_seconds))

    def work(
        self,
        handler: Handler,
        *,
        concurrency: int = 1,
        lease_seconds: float = 30.0,
        grace_seconds: float = 25.0,
        signals: bool = True,
    ) -> None:
        """Hand messages to `handler`, in so many threads, until SIGTERM or SIGINT.

        A message is acknowledged when the handler returns, and negatively when it raises: `Retry(delay_seconds)` and
        `Reject(reason)` give more control. If the message is a request, what the handler returns is the reply to it, unless it is
        None. Messages in progress stay hidden, up to `lease_seconds` after the worker ends.
        """
        worker = self.worker(
            handler,
            concurrency=concurrency,
            lease_seconds=lease_seconds,
            grace_seconds=grace_seconds,
        )
        worker.run(signals=signals)
