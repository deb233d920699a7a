"""A queue's messages: typed wrappers of the queue scripts."""

from collections.abc import Awaitable, Sequence

from storage.domain.clock import ScriptTime
from storage.domain.limits import Limits
from storage.domain.queues.message import Settled
from storage.domain.queues.queue import Queue
from storage.hot_store.queues.store import (
    HotReceive,
    PartSent,
    QueueStore,
    ReceivePart,
    SendPart,
    Verdict,
)
from storage.redis.queues.receive import Receives
from storage.redis.queues.send import Sends
from storage.redis.queues.settle import SettlePart, Settles
from storage.redis.transport.pipeline import Pipeline

_ACK_BYTES = 64  # approximate size of one settlement


class RedisQueueStore(QueueStore):
    """Queue verbs, coalesced.

    Concurrent calls of several callers on one queue share a script call: a call's own part is a fraction of its cost.
    """

    def __init__(self, pipeline: Pipeline, limits: Limits) -> None:
        self._pipeline = pipeline
        self._limits = limits

    def send(
        self, queue: Queue, part: SendPart, store_epoch: int, now: ScriptTime
    ) -> Awaitable[PartSent]:
        gatherer = Sends(queue, store_epoch, now, self._limits)
        return self._pipeline.gather(gatherer, part, part.size_bytes)

    async def receive(
        self, queue: Queue, part: ReceivePart, *, receives_max: int, now: ScriptTime
    ) -> HotReceive:
        while True:
            gatherer = Receives(queue, receives_max, now, self._limits)
            received: HotReceive = await self._pipeline.gathered(gatherer, part, 0)
            if received.served:
                return received

    async def settle(
        self, queue: Queue, verdicts: Sequence[Verdict], any_delivery: bool, now: ScriptTime
    ) -> list[Settled]:
        part = SettlePart.of(verdicts)
        size_bytes = part.count * _ACK_BYTES
        settled: list[Settled] = await self._pipeline.gathered(
            Settles(queue, any_delivery, now), part, size_bytes
        )
        return settled
