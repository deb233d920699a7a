"""A queue's messages: the typed side of the queue scripts."""

from collections.abc import Awaitable, Sequence

from storage.domain.clock import ScriptTime
from storage.domain.limits import Limits
from storage.domain.queues.message import Settled
from storage.domain.queues.queue import Queue
from storage.redis.queues.receive import HotReceive, ReceivePart, Receives
from storage.redis.queues.send import PartSent, SendPart, Sends
from storage.redis.queues.settle import SettlePart, Settles, Verdict
from storage.redis.transport.pipeline import Pipeline

_ACK_BYTES = 64  # about, of one verdict


class HotQueues:
    """The operations of a queue. Raises LogNotReady where the log must be seen to first.

    What several callers want of one queue at the same time is one script call: a call's own part is a fraction of what
    it costs.
    """

    def __init__(self, pipeline: Pipeline, known: Limits) -> None:
        self._pipeline = pipeline
        self._limits = known

    def send(
        self, queue: Queue, part: SendPart, store_epoch: int, now: ScriptTime
    ) -> Awaitable[PartSent]:
        """Add a part together with others of the same flush."""
        gatherer = Sends(queue, store_epoch, now, self._limits)
        return self._pipeline.gather(gatherer, part, part.size_bytes)

    async def receive(
        self, queue: Queue, part: ReceivePart, *, receives_max: int, now: ScriptTime
    ) -> HotReceive:
        """Hand out messages that are ready. Raises InFlightLimitReached."""
        while True:
            gatherer = Receives(queue, receives_max, now, self._limits)
            found: HotReceive = await self._pipeline.gathered(gatherer, part, 0)
            if found.served:
                return found

    async def settle(
        self, queue: Queue, verdicts: Sequence[Verdict], any_delivery: bool, now: ScriptTime
    ) -> list[Settled]:
        """Take verdicts; one answer for each."""
        part = SettlePart.of(verdicts)
        size_bytes = part.count * _ACK_BYTES
        settled: list[Settled] = await self._pipeline.gathered(
            Settles(queue, any_delivery, now), part, size_bytes
        )
        return settled
