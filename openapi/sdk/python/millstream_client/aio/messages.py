"""A message at its receiver, and what can be done with it."""

from typing import Protocol

from millstream_client.messages import Delivery, Received, Settled, Settlement, Verdict


class AsyncSettling(Protocol):
    """Where verdicts go."""

    async def settle_one(self, settlement: Settlement) -> Settled: ...


class AsyncMessage(Received):
    """A message that was received. Settle it before `visible_at`: then others get it.

    Raises ItemRefused, with `receipt_handle_expired` when the delivery is over.
    """

    __slots__ = ("_source", "settled")

    def __init__(self, delivery: Delivery, source: AsyncSettling) -> None:
        super().__init__(delivery)
        self._source = source
        self.settled = False

    async def ack(self) -> None:
        """It is done, and gone."""
        await self._end(Verdict.ACK)

    async def nack(self, delay_seconds: float | None = None, reason: str = "") -> None:
        """It failed: again after a delay, or as the queue's back-off says; to the dead letters after the last attempt."""
        await self._end(Verdict.NACK, delay_seconds=delay_seconds, reason=reason)

    async def release(self) -> None:
        """It was not tried: back at once."""
        await self._end(Verdict.RELEASE)

    async def reject(self, reason: str = "") -> None:
        """Never again: to the dead letters."""
        await self._end(Verdict.REJECT, reason=reason)

    async def extend(self, visibility_timeout_seconds: float) -> None:
        """Still at work: hide it for so long from now."""
        await self._source.settle_one(
            Settlement(
                self.receipt_handle,
                Verdict.EXTEND,
                visibility_timeout_seconds=visibility_timeout_seconds,
            )
        )

    async def _end(
        self, verdict: Verdict, delay_seconds: float | None = None, reason: str = ""
    ) -> None:
        await self._source.settle_one(
            Settlement(self.receipt_handle, verdict, delay_seconds=delay_seconds, reason=reason)
        )
        self.settled = True
