"""High-water marks of monotonic producers, kept by the logs of streams and queues alike."""

from collections.abc import Sequence

import msgspec

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.redis.keys import LogAddress, writer_watermark_keys
from storage.redis.transport.pipeline import Pipeline
from storage.redis.transport.script_status import checked


class WriterWatermarks(msgspec.Struct, frozen=True, gc=False):
    """A log's state of monotonic producers.

    `lasts`: last sequences of the requested producers. `producers`: number of all that it knows; `remembers_retired`: some
    retired producers may still send something.
    """

    closed: bool
    producers: int
    remembers_retired: bool
    lasts: Sequence[int]


class HotWriterWatermarks:
    """Queries and retires monotonic producers. Raises LogNotReady where the log needs repair."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def get(self, log: LogAddress, producer_ids: Sequence[str]) -> WriterWatermarks:
        """Return the producers' last sequences.

        See `storage.domain.streams.idempotence` for the values that mean none.
        """
        keys = writer_watermark_keys(log.namespace, log.log_id)
        reply = checked(await self._pipeline.read("get_writer_watermark", keys, *producer_ids))
        return WriterWatermarks(bool(reply[1]), reply[2], bool(reply[3]), reply[4:])

    async def retire(self, log: LogAddress, producer_ids: Sequence[str], now: ScriptTime) -> int:
        """Retire finished producers; return how many the log knew.

        Late records of theirs are refused.
        """
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
