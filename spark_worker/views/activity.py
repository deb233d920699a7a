"""Activity of a stream's shards, and the watermark that follows the clock without them."""

import time
from collections.abc import Callable

from spark_worker.views.step import ended_shards
from storage.domain import limits
from storage.domain.streams.stream import StreamRead
from storage.domain.views.progress import ViewRevision


class ShardActivity:
    """Times at which shards last brought records, since the scan began."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._active_at: dict[int, float] = {}

    def note(self, read: StreamRead) -> None:
        """Note which shards have brought records."""
        now = self._clock()
        self._active_at |= {shard.shard: now for shard in read.shards if shard.records}

    def idle(self, revision: ViewRevision) -> list[int]:
        """Return the shards that brought nothing for longer than the input's `idle_ms`."""
        until = self._clock() - revision.query.input.idle_ms / limits.SECOND_MS
        marks = revision.progress.marks
        return [shard for shard in marks if self._active_at.get(shard, self._began) < until]

    def watermark(self, revision: ViewRevision) -> int:
        """Return the watermark that follows the clock, the present one unless all shards are idle."""
        progress, input_ = revision.progress, revision.query.input
        if (
            {*progress.marks}
            - {*self.idle(revision)}
            - ended_shards(progress.marks, progress.positions)
        ):
            return progress.watermark_ms or 0
        active_at = max(self._active_at.get(shard, self._began) for shard in progress.marks)
        quiet_ms = int((self._clock() - active_at) * limits.SECOND_MS)
        return max(progress.marks.values()) - input_.watermark_ms + quiet_ms
