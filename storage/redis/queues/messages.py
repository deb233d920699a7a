"""A queue's messages: typed wrappers of the queue scripts."""

from collections.abc import Awaitable, Sequence

from storage.domain.clock import ScriptTime
from storage.domain.limits import Limits
from storage.domain.queues.message import Settled
from storage.domain.queues.queue import Queue
from storage.redis.queues.receive import HotReceive, ReceivePart, Receives
from storage.redis.queues.send import PartSent, SendPart, Sends
from storage.redis.queues.settle import SettlePart, Settles, Verdict
from storage.redis.transport.pipeline import Pipeline

_ACK_BYTES = 64  # approximate size of one settlement


class HotQueues:
    """Operations of a queue. Raises LogNotReady where the log needs repair first.

    Concurrent calls of several callers on one queue are coalesced into one script call: a call's own part is a fraction
    of its cost.
    """

    def __init__(self, pipeline: Pipeline, limits: Limits) -> None:
        self._pipeline = pipeline
        self._limits = limits

    def send(
        self, queue: Queue, part: SendPart, store_epoch: int, now: ScriptTime
    ) -> Awaitable[PartSent]:
        """Send a part together with others of the same flush."""
        gatherer = Sends(queue, store_epoch, now, self._limits)
        return self._pipeline.gather(gatherer, part, part.size_bytes)

    async def receive(
        self, queue: Queue, part: ReceivePart, *, receives_max: int, now: ScriptTime
    ) -> HotReceive:
        """Receive ready messages. Raises InFlightLimitReached."""
        while True:
            gatherer = Receives(queue, receives_max, now, self._limits)
            received: HotReceive = await self._pipeline.gathered(gatherer, part, 0)
            if received.served:
                return received

    async def settle(
        self, queue: Queue, verdicts: Sequence[Verdict], any_delivery: bool, now: ScriptTime
    ) -> list[Settled]:
        """Settle deliveries; return one result for each."""
        part = SettlePart.of(verdicts)
        size_bytes = part.count * _ACK_BYTES
        settled: list[Settled] = await self._pipeline.gathered(
            Settles(queue, any_delivery, now), part, size_bytes
        )
        return settled
