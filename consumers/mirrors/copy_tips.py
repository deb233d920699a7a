"""Tips of the copies of streams: lower bounds of what is appended after they were read."""

from typing import NamedTuple

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.names import LogId, StreamName
from storage.domain.streams.stream import ShardState
from storage.streams.read import RecordReader


class Tips(NamedTuple):
    """Shards of the copy of a stream at `read_at_ms`; `appended`: records added since."""

    states: tuple[ShardState, ...]
    read_at_ms: int
    appended: int = 0

    def of_range(self, first_hash_key: int, last_hash_key: int) -> dict[int, int]:
        """Return the next offset of each shard that takes some of these hash keys."""
        return {
            one.shard.index: one.next
            for one in self.states
            if one.shard.first_hash_key <= last_hash_key
            and first_hash_key <= one.shard.last_hash_key
        }

    @property
    def starts(self) -> dict[int, int]:
        """The offset of the first record of each shard."""
        return {one.shard.index: one.start for one in self.states}


class CopyTips:
    """Cache of tips; older ones are right as well, and only less exact."""

    def __init__(self, reader: RecordReader, clock: Clock, age_ms_max: int) -> None:
        self._reader = reader
        self._clock = clock
        self._age_ms_max = age_ms_max
        self._tips: dict[tuple[StreamName, LogId], Tips] = {}

    async def read(self, stream: StreamName, stream_id: LogId) -> Tips:
        """Return tips that were read before now. Raises StreamNotFound."""
        key, now_ms = (stream, stream_id), self._clock.now_ms()
        tips = self._tips.get(key)
        if tips is not None and not self._is_old(tips, now_ms):
            return tips
        states = await self._reader.shards(stream, stream_id)
        self._tips[key] = tips = Tips(tuple(states), now_ms)
        return tips

    def _is_old(self, tips: Tips, now_ms: int) -> bool:
        is_due = now_ms - tips.read_at_ms >= self._age_ms_max
        return tips.appended > 0 and (is_due or tips.appended >= limits.MIRROR_OFFSET_INTERVAL)

    def observe_append(self, stream: StreamName, stream_id: LogId, added: int) -> None:
        """Note that records were added to a copy."""
        key = (stream, stream_id)
        if key in self._tips:
            tips = self._tips[key]
            self._tips[key] = tips._replace(appended=tips.appended + added)
