"""A subscription for programs without a loop of their own: the asynchronous one, in a thread."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from millstream_client.aio.messages import AsyncMessage
from millstream_client.aio.subscriptions import AsyncSubscription
from millstream_client.aio.transport import AsyncTransport
from millstream_client.messages import Settled, Settlement
from millstream_client.records import Gap, Record
from millstream_client.starting import Plan
from millstream_client.sync.messages import Message
from millstream_client.sync.transport import Transport

T = TypeVar("T")

END_S = 1.0  # that what is under way has when a subscription is closed


class Subscription:
    """Deliveries as they come: Messages of a queue, Records of a stream. Use it `with`, once. See AsyncSubscription."""

    def __init__(
        self, transport: Transport, plan: Plan, on_gap: Callable[[Gap], Any] | None = None
    ) -> None:
        self._options = transport.options
        self._plan = plan
        self._on_gap = on_gap
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._inner: AsyncSubscription | None = None

    def __enter__(self) -> "Subscription":
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

    async def _open(self) -> AsyncSubscription:
        self._transport = AsyncTransport(self._options)
        inner = AsyncSubscription(self._transport, self._plan, self._on_gap)
        try:
            return await inner.__aenter__()
        except BaseException:
            await self._transport.aclose()
            raise

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it: what was delivered and not settled is released at once."""
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

    def __iter__(self) -> "Subscription":
        return self

    def __next__(self) -> Any:
        if self._inner is None:
            raise StopIteration
        try:
            item = self._run(self._inner.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None
        return Message(item.delivery, self) if isinstance(item, AsyncMessage) else item

    def settle_one(self, settlement: Settlement) -> Settled:
        """Give a verdict on a message. Raises ItemRefused."""
        return self._run(self._opened.settle_one(settlement))

    def commit(self, record: Record) -> None:
        """Of a group: this record, and what came before it in its shard, is done. Raises Conflict where the shard is
        another member's now."""
        self._run(self._opened.commit(record))

    @property
    def _opened(self) -> AsyncSubscription:
        if self._inner is None:
            raise RuntimeError("A subscription is used `with`.")
        return self._inner

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def _wait_for_others() -> None:
    """Until all other tasks of this loop have ended, or for a while."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others, timeout=END_S)
