"""Subscriptions over a WebSocket, which survive lost connections."""

from collections.abc import Iterable
from typing import Any

from millstream_client.aio.connections import AsyncConnection
from millstream_client.aio.messages import AsyncMessage
from millstream_client.aio.transport import AsyncTransport
from millstream_client.conversing import Conversation, Said
from millstream_client.errors import ItemRefused, Lost
from millstream_client.gaps import OnGap, warn_of
from millstream_client.messages import Delivery, Settled, Settlement
from millstream_client.records import Gap, Record
from millstream_client.starting import Plan, resolve


class AsyncSubscription(AsyncConnection[Conversation]):
    """Deliveries as they arrive: AsyncMessages of a queue, Records of a stream.

    Use it once, `async with`. A lost connection is reopened without skipping anything: a session that the service still has is
    resumed; otherwise records continue after the last one, and messages are redelivered after their visibility timeout.
    `on_gap` is called for offsets that are permanently lost. The iteration ends when the subscription is closed. Raises
    MillstreamError if it cannot continue, and Lost if the server closed it permanently.
    """

    _no_socket = (
        "The in-memory service has no WebSocket; long polls work: "
        "messages(), read(follow=True), batches()."
    )
    _closed = "The subscription is closed"

    def __init__(self, transport: AsyncTransport, plan: Plan, on_gap: OnGap | None = None) -> None:
        super().__init__(transport)
        self._plan = plan
        self._on_gap = on_gap or warn_of

    async def _begin(self) -> Conversation:
        return Conversation(await resolve(self._transport, self._plan))

    @property
    def _reconnects_forever(self) -> bool:
        return self._was_on

    async def aclose(self) -> None:
        """Close the subscription; unsettled deliveries are released immediately."""
        await super().aclose()

    # ── For its owner ──

    def __aiter__(self) -> "AsyncSubscription":
        return self

    async def __anext__(self) -> Any:
        session = self._open_session
        await self._say(session.done())
        while True:
            if not session.arrived:
                await self._until_something_comes(session)
            item, said = session.take()
            await self._say(said)
            if isinstance(item, Gap):
                self._on_gap(item)
            else:
                return AsyncMessage(item, self) if isinstance(item, Delivery) else item

    async def _until_something_comes(self, session: Conversation) -> None:
        try:
            await self._until(lambda: bool(session.arrived))
        except Lost:
            if self._task is None:  # closed by its owner, elsewhere
                raise StopAsyncIteration from None
            raise

    async def settle_one(self, settlement: Settlement) -> Settled:
        """Settle a message. Raises ItemRefused."""
        return Settled(reply_error=await self._answered(*self._open_session.settle(settlement)))

    async def commit(self, record: Record) -> None:
        """Commit a record of a group, and everything before it in its shard.

        Raises Conflict if the shard was reassigned.
        """
        await self._answered(*self._open_session.commit(record.shard, record.offset + 1))

    async def _answered(self, id_: str, said: Iterable[Said]) -> ItemRefused | None:
        """Send frames and wait for the answer; return why a reply was refused, if it was."""
        session = self._open_session
        await self._say(said)
        await self._until(lambda: id_ in session.answers)
        return session.result(id_)
