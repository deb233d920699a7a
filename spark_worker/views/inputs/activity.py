"""Activity of shards, and the watermark that follows the clock without it."""

import time
from collections.abc import Callable, Collection, Sequence

from storage.domain import limits
from storage.domain.streams.stream import StreamRead
from storage.domain.views.progress import FollowedStream, RevisionState, ViewRevision
from storage.domain.views.watermark import ended_shards

_EVERY = ""
"""Revisions that are not built, whose times are those of the streams."""


class ShardActivity:
    """Times at which shards last brought records, since the scan began.

    A revision that is built reads old records: it has times of its own.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._active_at: dict[tuple[str, str, int], float] = {}

    def keep(self, revision_ids: Collection[str]) -> None:
        """Forget the times of all other revisions."""
        present = {_EVERY, *revision_ids}
        self._active_at = {key: at for key, at in self._active_at.items() if key[0] in present}

    def note(self, revision: ViewRevision, reads: Sequence[StreamRead]) -> None:
        """Note which shards of a revision's streams have brought records."""
        now, reader = self._clock(), _reader(revision)
        for followed, read in zip(revision.streams, reads, strict=True):
            shards = [shard.shard for shard in read.shards if shard.records]
            self._active_at |= {(reader, followed.input.stream, shard): now for shard in shards}

    def idle(self, revision: ViewRevision) -> dict[str, list[int]]:
        """Return the shards of each stream, by its name, that had no records for its `idle_ms`."""
        return {one.relation: self._idle(revision, one) for one in revision.streams}

    def watermark(self, revision: ViewRevision) -> int:
        """Return the watermark that follows the clock, the present one unless all are idle."""
        active_at, newest_ms = list[float](), list[int]()
        for followed in revision.streams:
            progress = followed.progress
            if (
                {*progress.marks}
                - {*self._idle(revision, followed)}
                - ended_shards(progress.marks, progress.positions)
            ):
                return revision.progress.watermark_ms or 0
            active_at += [self._last(revision, followed, shard) for shard in progress.marks]
            newest_ms += [mark - followed.input.watermark_ms for mark in progress.marks.values()]
        quiet_ms = int((self._clock() - max(active_at)) * limits.SECOND_MS)
        return max(newest_ms) - revision.plan.join_delay_ms + quiet_ms

    def _idle(self, revision: ViewRevision, followed: FollowedStream) -> list[int]:
        until = self._clock() - followed.input.idle_ms / limits.SECOND_MS
        return [
            shard
            for shard in followed.progress.marks
            if self._last(revision, followed, shard) < until
        ]

    def _last(self, revision: ViewRevision, followed: FollowedStream, shard: int) -> float:
        key = _reader(revision), followed.input.stream, shard
        return self._active_at.get(key, self._began)


def _reader(revision: ViewRevision) -> str:
    """Return whose times a revision has: its own while it is built."""
    return revision.revision_id if revision.state is RevisionState.BUILDING else _EVERY
