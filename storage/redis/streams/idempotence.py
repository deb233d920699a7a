"""High-water marks of monotonic producers, kept by the logs of streams and queues alike."""

from collections.abc import Sequence

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.domain.log.address import LogAddress
from storage.hot_store.log_store import WatermarkStore, WriterWatermarks
from storage.redis.keys import writer_watermark_keys
from storage.redis.script_store import ScriptStore
from storage.redis.transport.script_status import checked


class RedisWatermarkStore(ScriptStore, WatermarkStore):
    """Watermark verbs as one script each."""

    async def get(self, log: LogAddress, producer_ids: Sequence[str]) -> WriterWatermarks:
        keys = writer_watermark_keys(log.namespace, log.log_id)
        reply = checked(await self._pipeline.read("get_writer_watermark", keys, *producer_ids))
        return WriterWatermarks(bool(reply[1]), reply[2], bool(reply[3]), reply[4:])

    async def retire(self, log: LogAddress, producer_ids: Sequence[str], now: ScriptTime) -> int:
        keys = writer_watermark_keys(log.namespace, log.log_id)
        reply = checked(
            await self._pipeline.write(
                "retire_writer",
                keys,
                now,
                limits.MONOTONIC_WRITERS_RETIRED_MS,
                limits.MONOTONIC_WRITERS_RETIRED_MAX,
                *producer_ids,
            )
        )
        return int(reply[1])
