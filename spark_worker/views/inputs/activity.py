"""Activity of shards, and the watermark that follows the clock without it."""

import time
from collections.abc import Callable, Sequence

from storage.domain import limits
from storage.domain.streams.stream import StreamRead
from storage.domain.views.progress import FollowedStream, ViewRevision
from storage.domain.views.watermark import ended_shards


class ShardActivity:
    """Times at which shards last brought records, since the scan began."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._active_at: dict[tuple[str, int], float] = {}

    def note(self, revision: ViewRevision, reads: Sequence[StreamRead]) -> None:
        """Note which shards of a revision's streams have brought records."""
        now = self._clock()
        for followed, read in zip(revision.streams, reads, strict=True):
            shards = [shard.shard for shard in read.shards if shard.records]
            self._active_at |= {(followed.input.stream, shard): now for shard in shards}

    def idle(self, revision: ViewRevision) -> dict[str, list[int]]:
        """Return the shards of each stream, by its name, that had no records for its `idle_ms`."""
        return {one.relation: self._idle(one) for one in revision.streams}

    def watermark(self, revision: ViewRevision) -> int:
        """Return the watermark that follows the clock, the present one unless all are idle."""
        active_at, newest_ms = list[float](), list[int]()
        for followed in revision.streams:
            progress = followed.progress
            if (
                {*progress.marks}
                - {*self._idle(followed)}
                - ended_shards(progress.marks, progress.positions)
            ):
                return revision.progress.watermark_ms or 0
            active_at += [self._last(followed, shard) for shard in progress.marks]
            newest_ms += [mark - followed.input.watermark_ms for mark in progress.marks.values()]
        quiet_ms = int((self._clock() - max(active_at)) * limits.SECOND_MS)
        return max(newest_ms) - revision.plan.join_delay_ms + quiet_ms

    def _idle(self, followed: FollowedStream) -> list[int]:
        until = self._clock() - followed.input.idle_ms / limits.SECOND_MS
        return [shard for shard in followed.progress.marks if self._last(followed, shard) < until]

    def _last(self, followed: FollowedStream, shard: int) -> float:
        return self._active_at.get((followed.input.stream, shard), self._began)
