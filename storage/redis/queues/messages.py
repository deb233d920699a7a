"""A queue's messages: typed wrappers of the queue scripts."""

from collections.abc import Awaitable, Sequence

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.domain.errors import IdempotencyKeyReused
from storage.domain.limits import Limits
from storage.domain.queues.message import Settled
from storage.domain.queues.queue import Queue
from storage.hot_store.errors import PartitionsChanged
from storage.hot_store.queues.store import (
    HotReceive,
    PartSent,
    QueueStore,
    ReceivePart,
    SendPart,
    SentBefore,
    Verdict,
)
from storage.redis.queues.receive import Receives
from storage.redis.queues.script_args import queue_keys_of
from storage.redis.queues.send import Sends
from storage.redis.queues.settle import SettlePart, Settles
from storage.redis.transport.pipeline import Pipeline
from storage.redis.transport.script_status import checked

_RECALLED, _CHANGED, _KEY_REUSED = 1, 2, 3
_ACK_BYTES = 64  # approximate size of one settlement


class RedisQueueStore(QueueStore):
    """Queue verbs, coalesced.

    Concurrent calls of several callers on one queue share a script call: a call's own part is a fraction of its cost.
    """

    def __init__(self, pipeline: Pipeline, deployment_limits: Limits) -> None:
        self._pipeline = pipeline
        self._limits = deployment_limits

    def send(
        self, queue: Queue, part: SendPart, store_epoch: int, now: ScriptTime
    ) -> Awaitable[PartSent]:
        gatherer = Sends(queue, store_epoch, now, self._limits)
        return self._pipeline.gather(gatherer, part, part.size_bytes)

    async def sent_before(
        self,
        log: Queue,
        generation: int,
        part: SendPart,
        producer_ids: Sequence[str],
        now: ScriptTime,
    ) -> SentBefore:
        reply = checked(
            await self._pipeline.write(
                "find_sent",
                queue_keys_of(log),
                now,
                generation,
                limits.IDEMPOTENCY_WINDOW_MS,
                part.idempotency_key,
                part.fingerprint,
                *producer_ids,
            )
        )
        if reply[1] == _CHANGED:
            raise PartitionsChanged
        if reply[1] == _KEY_REUSED:
            raise IdempotencyKeyReused
        return SentBefore(reply[2] if reply[1] == _RECALLED else None, reply[3])

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
