"""Consumers of queues in the hot store: typed wrappers of their scripts."""

from collections.abc import Mapping, Sequence

import msgspec

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.domain.log.address import LogAddress
from storage.domain.queues.consumer import ConsumerReport
from storage.domain.queues.queue import Queue
from storage.hot_store.queues.consumers import ConsumerSnapshot, QueueConsumerStore
from storage.redis.keys import consumer_keys
from storage.redis.queues.queue_scripts import QueueScripts
from storage.redis.queues.script_args import queue_keys_of
from storage.redis.transport.command import Argument
from storage.redis.transport.script_status import checked

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(ConsumerReport)


class RedisQueueConsumerStore(QueueScripts, QueueConsumerStore):
    """Consumers of a queue in keys beside its log, which expire by themselves."""

    async def report(
        self, queue: LogAddress, process: bytes, reports: Sequence[ConsumerReport]
    ) -> None:
        arguments: list[Argument] = []
        for report in reports:
            key = report.consumer.key
            arguments += (report.last_received_at_ms, key, key + process, _encoder.encode(report))
        await self._pipeline.write(
            "report_consumers",
            consumer_keys(queue.namespace, queue.log_id)[:2],
            limits.CONSUMER_RETENTION_MS,
            limits.QUEUE_CONSUMERS_MAX,
            *arguments,
        )

    async def snapshot(
        self, queue: Queue, now: ScriptTime, *, counted_max: int
    ) -> ConsumerSnapshot:
        keys = (*queue_keys_of(queue), *consumer_keys(queue.name.namespace, queue.log_id))
        reply = await self._pipeline.read("list_consumers", keys, now, counted_max)
        _, in_flight, counted, by_key, reports = checked(reply)
        return ConsumerSnapshot(
            reports=[_decoder.decode(report) for report in reports],
            in_flight=in_flight,
            counted=counted,
            by_key=dict(zip(by_key[::2], by_key[1::2], strict=True)),
        )

    async def add_acknowledge_times(self, queue: LogAddress, counts: Mapping[int, int]) -> None:
        _, _, times = consumer_keys(queue.namespace, queue.log_id)
        buckets = [number for bucket in counts.items() for number in bucket]
        await self._pipeline.write(
            "add_acknowledge_times", [times], limits.ACKNOWLEDGE_TIMES_RETENTION_MS, *buckets
        )
