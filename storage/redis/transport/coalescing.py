"""Calls that wait for the next flush: each by itself, or gathered with others that want the same of the same log."""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, TypeVar

from storage.concurrency.tasks import give
from storage.domain.errors import StorageUnavailable
from storage.domain.limits import CALL_WEIGHT
from storage.redis.transport.client import Reply
from storage.redis.transport.command import Command

Store = int | None
P = TypeVar("P")


class StoreChanged(StorageUnavailable):
    """The store is another one now, or has forgotten something; nothing happened. Who makes the call anew makes it for
    that store: engines do, so few callers hear of it."""


class Coalescer(Protocol):
    """How the parts of several callers become few commands, and their answers one for each part.

    Parts that are given to gatherers of equal `alike` are gathered.
    """

    @property
    def alike(self) -> Hashable:
        """What is the same in all that do the same."""
        ...

    @property
    def key(self) -> bytes:
        """A key of the log."""
        ...

    def commands(self, parts: Sequence[Any]) -> list[tuple[Command, int]]:
        """Commands in order, each with the number of parts, from the first on, that it carries."""
        ...

    def answers(self, parts: Sequence[Any], reply: Reply) -> Sequence[Any]:
        """The answer for each part of one command; an exception among them is raised to its caller."""
        ...

    def abandoned(self, part: Any, answer: Any) -> None:
        """Take back what was answered to a caller that was cancelled after the command had left. One that was cancelled
        before that leaves nothing: its part is not sent."""
        ...


class CoalescingKey:
    """Does the same as others of its kind of which the same is known."""

    __slots__ = ("alike",)

    def __init__(self, *known: Hashable) -> None:
        self.alike: Hashable = (type(self), *known)


class Call:
    """One command and the caller that waits for its answer."""

    __slots__ = ("command", "done", "store")
    weight = CALL_WEIGHT
    count = 1
    size_bytes = 0  # small, but for a few

    def __init__(self, command: Command, done: "asyncio.Future[Reply]", store: Store) -> None:
        self.command = command
        self.done = done
        self.store = store

    def commands(self) -> list[Command]:
        """What to send: nothing for a caller that has gone."""
        return [] if self.done.done() else [self.command]

    def settle(self, replies: Sequence[Reply]) -> None:
        """Hand the answer to its caller."""
        for reply in replies:
            give(self.done, reply)


class Redirected(Call):
    """A command that another server of a cluster sent here. It is not sent any further."""

    __slots__ = ()


class CoalescedBatch:
    """The parts that several callers want done to one log."""

    __slots__ = ("_counts", "_waiting", "gatherer", "parts", "size_bytes", "store", "weight")

    def __init__(self, gatherer: Coalescer, store: Store) -> None:
        self.gatherer = gatherer
        self.store = store
        self.parts: list[tuple[Any, asyncio.Future[Any]]] = []
        self.size_bytes = 0
        self.weight = 0

    @property
    def count(self) -> int:
        """How many callers."""
        return len(self.parts)

    def commands(self) -> list[Command]:
        """What to send for those who still wait."""
        self._waiting = [(part, done) for part, done in self.parts if not done.done()]
        if not self._waiting:
            return []
        commands = self.gatherer.commands([part for part, _ in self._waiting])
        self._counts = [count for _, count in commands]
        return [command for command, _ in commands]

    def settle(self, replies: Sequence[Reply]) -> None:
        """Hand each of them its answer."""
        start = 0
        for count, reply in zip(self._counts, replies, strict=True):
            self._settle_some(self._waiting[start : start + count], reply)
            start += count

    def _settle_some(
        self, waiting: Sequence[tuple[Any, "asyncio.Future[Any]"]], reply: Reply
    ) -> None:
        if isinstance(reply, Exception):
            answers: Sequence[Any] = [reply] * len(waiting)
        else:
            answers = self.gatherer.answers([part for part, _ in waiting], reply)
        for (part, done), answer in zip(waiting, answers, strict=True):
            give(done, answer)
            if done.cancelled() and not isinstance(answer, Exception):
                self.gatherer.abandoned(part, answer)


Work = Call | CoalescedBatch
"""What a flush takes."""


def fail(works: Sequence[Work], error: Exception) -> None:
    """Tell everybody who waits for some work."""
    for work in works:
        futures = [work.done] if isinstance(work, Call) else [done for _, done in work.parts]
        for done in futures:
            give(done, error)


def runs_of(parts: Sequence[P], weight: Callable[[P], int], most: int) -> list[list[P]]:
    """The parts in order, in runs that weigh `most` together, but for a part that is heavier by itself."""
    runs: list[list[P]] = [[]]
    total = 0
    for part in parts:
        total += weight(part)
        if runs[-1] and total > most:
            runs.append([])
            total = weight(part)
        runs[-1].append(part)
    return runs
