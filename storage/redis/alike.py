"""What lets the calls of several callers find one another in a flush: gatherers of which the same is known."""

from collections.abc import Hashable

from storage.domain.clock import ScriptTime
from storage.domain.queues import Queue
from storage.redis.queue_words import queue_keys_of


class Alike:
    """Does the same as others of its kind of which the same is known."""

    __slots__ = ("alike",)

    def __init__(self, *known: Hashable) -> None:
        self.alike: Hashable = (type(self), *known)


class SameQueue(Alike):
    """Part of a gatherer: does the same as others of its kind for the same definition of a queue, time, and what else
    `told` says of the script call that they share."""

    __slots__ = ("now", "queue")

    def __init__(self, queue: Queue, now: ScriptTime, *told: Hashable) -> None:
        super().__init__(id(queue), now, *told)
        self.queue = queue
        self.now = now

    @property
    def key(self) -> bytes:
        """A key of the log."""
        return queue_keys_of(self.queue)[0]
