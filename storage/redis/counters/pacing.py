"""A rate that many processes keep together: who wants to do something reserves its time, and waits for it."""

from storage.domain import limits
from storage.domain.replays.pacing import Pacing
from storage.redis.keys import pace_key
from storage.redis.transport.pipeline import Pipeline

_SECOND_US = 1_000_000


class HotPacing:
    """Rates by name."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def reserve(
        self, namespace: str, name: str, pacing: Pacing, records: int, size_bytes: int
    ) -> int:
        """Reserve time for so many records and bytes; how long to wait before they are sent, ms."""
        asked: list[str | int] = []
        if pacing.records_per_second is not None:
            asked += ("records", round(records / pacing.records_per_second * _SECOND_US))
        if pacing.bytes_per_second is not None:
            asked += ("bytes", round(size_bytes / pacing.bytes_per_second * _SECOND_US))
        if not asked:
            return 0
        key = pace_key(namespace, name)
        reply = await self._pipeline.write("reserve_pace", [key], limits.HOUR_MS, *asked)
        return int(reply[0])
