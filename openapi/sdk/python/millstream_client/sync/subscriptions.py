"""Subscriptions for programs without an event loop."""

from collections.abc import Callable
from typing import Any

from millstream_client.aio.messages import AsyncMessage
from millstream_client.aio.subscriptions import AsyncSubscription
from millstream_client.aio.transport import AsyncTransport
from millstream_client.messages import Settled, Settlement
from millstream_client.records import Gap, Record
from millstream_client.starting import Plan
from millstream_client.sync.connections import Connection
from millstream_client.sync.messages import Message
from millstream_client.sync.transport import Transport


class Subscription(Connection[AsyncSubscription]):
    """Deliveries as they come: Messages of a queue, Records of a stream. Use it `with`, once. See AsyncSubscription."""

    def __init__(
        self, transport: Transport, plan: Plan, on_gap: Callable[[Gap], Any] | None = None
    ) -> None:
        super().__init__(transport.options)
        self._plan = plan
        self._on_gap = on_gap

    def _make(self, transport: AsyncTransport) -> AsyncSubscription:
        return AsyncSubscription(transport, self._plan, self._on_gap)

    def close(self) -> None:
        """Close it: what was delivered and not settled is released at once."""
        super().close()

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
