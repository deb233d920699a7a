"""Progress of a mirror: for each shard of the origin, up to where this deployment has it."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from storage.domain import limits
from storage.domain.mirrors.groups import MirroredGroup
from storage.domain.names import LogId

MIRROR_ORIGIN = ":origin"
"""Header of a mirrored record: where it was first appended, as `<stream id>/<shard>/<offset>`."""


class ShardKey(NamedTuple):
    """A shard of the origin. Another stream of the same name has other ones."""

    stream: str
    origin_id: LogId
    shard: int


class ShardProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress on one shard of the stream `origin_id`, copied to the stream `target_id`.

    Every record before `next_offset` is here, or was `skipped` since it came from here. `tip` is the end of the shard, and
    `behind_ms` the age of its oldest record that is not here, both as of `checked_at_ms`. `ended`: the shard is closed, and all
    of it is here. `failure`: why the last attempt failed; empty if it did not.
    """

    stream: str
    origin_id: LogId
    shard: int
    target_id: LogId
    next_offset: int = 0
    tip: int = 0
    behind_ms: int = 0
    checked_at_ms: int = 0
    copied: int = 0
    skipped: int = 0
    ended: bool = False
    failure: str = ""

    @property
    def key(self) -> ShardKey:
        """The shard."""
        return ShardKey(self.stream, self.origin_id, self.shard)

    @property
    def lag_records(self) -> int:
        """The number of records that are not here yet, as of the last check."""
        return max(0, self.tip - self.next_offset)

    def lag_ms(self, now_ms: int) -> int:
        """Return how old the oldest record may be that is not here yet.

        A check that failed, or that is older than its reports may be, says nothing of what came since.
        """
        return 0 if self.ended else _lag_ms(self, now_ms)


def _lag_ms(progress: "ShardProgress | QueueProgress", now_ms: int) -> int:
    age_ms = max(0, now_ms - progress.checked_at_ms)
    is_current = not progress.failure and age_ms <= limits.MIRROR_STALE_MS
    return progress.behind_ms + (0 if is_current else age_ms)


class QueueProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress on a queue of the origin, which has the same name here.

    `next_offset`: of the next message to copy; `tip`: of the next one to be sent there, each the sum of the queue's partitions; `behind_ms`: the age of the oldest message that
    is not here, all as of `checked_at_ms`. `copied`: messages that were added here. `paused`: its owner has paused it there.
    `failure`: why the last attempt failed.
    """

    queue: str
    paused: bool = False
    next_offset: int = 0
    tip: int = 0
    behind_ms: int = 0
    checked_at_ms: int = 0
    copied: int = 0
    failure: str = ""

    @property
    def lag_messages(self) -> int:
        """The number of messages that are not here yet at most, as of the last check."""
        return max(0, self.tip - self.next_offset)

    def lag_ms(self, now_ms: int) -> int:
        """Return how old the oldest message may be that is not here yet."""
        return _lag_ms(self, now_ms)


class MirrorStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a mirror on all shards and queues, and its groups.

    `failure`: why the origin's streams or groups could not be listed. `listed_at_ms`: when its streams last were; None if they
    never were since `created_at_ms`.
    """

    shards: tuple[ShardProgress, ...] = ()
    groups: tuple[MirroredGroup, ...] = ()
    queues: tuple[QueueProgress, ...] = ()
    failure: str = ""
    created_at_ms: int = 0
    listed_at_ms: int | None = None

    @property
    def lag_records(self) -> int:
        """The number of records and messages that are not here yet."""
        records = sum(shard.lag_records for shard in self.shards)
        return records + sum(queue.lag_messages for queue in self.queues)

    def lag_ms(self, now_ms: int) -> int:
        """Return the largest lag of a shard or queue.

        While the streams are not listed, there may be others, with records since then.
        """
        silence_ms = self.silence_ms(now_ms)
        is_listed = self.listed_at_ms is not None and silence_ms <= limits.MIRROR_STALE_MS
        parts: Iterable[ShardProgress | QueueProgress] = (*self.shards, *self.queues)
        return max([0 if is_listed else silence_ms, *(one.lag_ms(now_ms) for one in parts)])

    def silence_ms(self, now_ms: int) -> int:
        """Return how long ago the origin's streams were listed, or the mirror was created."""
        since_ms = self.created_at_ms if self.listed_at_ms is None else self.listed_at_ms
        return max(0, now_ms - since_ms)

    @property
    def failures(self) -> tuple[str, ...]:
        """Each failure once."""
        parts: Iterable[ShardProgress | MirroredGroup | QueueProgress]
        parts = (*self.shards, *self.queues, *self.groups)
        texts = (self.failure, *(part.failure for part in parts))
        return tuple(dict.fromkeys(text for text in texts if text))
