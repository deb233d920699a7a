"""What logs, of streams and queues alike, remember of producers that rise."""

from collections.abc import Sequence

import msgspec

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.redis.keys import LogAddress, rising_keys
from storage.redis.transport.pipeline import Pipeline
from storage.redis.transport.script_status import checked


class Recalled(msgspec.Struct, frozen=True, gc=False):
    """What a log took of producers: `lasts` as asked. `producers` are all that it knows; `remembers_over`: some
    of which it was told to forget may still send something."""

    closed: bool
    producers: int
    remembers_over: bool
    lasts: Sequence[int]


class HotRising:
    """Asks and forgets. Raises LogNotReady where the log must be seen to first."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def recall(self, at: LogAddress, producer_ids: Sequence[str]) -> Recalled:
        """The producers' last sequences: see `storage.domain.streams.idempotence` for what is none."""
        keys = rising_keys(at.namespace, at.log_id)
        reply = checked(await self._pipeline.read("get_writer_watermark", keys, *producer_ids))
        return Recalled(bool(reply[1]), reply[2], bool(reply[3]), reply[4:])

    async def forget(self, at: LogAddress, producer_ids: Sequence[str], now: ScriptTime) -> int:
        """Let go of producers that are over; how many the log knew. A straggler of theirs is refused."""
        keys = rising_keys(at.namespace, at.log_id)
        reply = checked(
            await self._pipeline.write(
                "retire_writer",
                keys,
                now,
                limits.RISING_OVER_MS,
                limits.RISING_OVER_MAX,
                *producer_ids,
            )
        )
        return int(reply[1])
