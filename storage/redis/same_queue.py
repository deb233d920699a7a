"""What lets the calls of several callers on one queue find one another in a flush."""

from collections.abc import Hashable

from storage.domain.clock import ScriptTime
from storage.domain.queues import Queue
from storage.redis.queue_words import queue_keys_of


class SameQueue:
    """Part of a gatherer: equal to others of its kind for the same definition of a queue, time, and what else `told`
    says of the script call that they share."""

    __slots__ = ("_known", "now", "queue")

    def __init__(self, queue: Queue, now: ScriptTime, *told: Hashable) -> None:
        self.queue = queue
        self.now = now
        self._known = (id(queue), now, *told)

    def __hash__(self) -> int:
        return hash(self._known)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._known == other._known

    @property
    def key(self) -> bytes:
        """A key of the log."""
        return queue_keys_of(self.queue)[0]
