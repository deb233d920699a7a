"""Calls that wait for the next flush: single, or coalesced with equal operations on a log."""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, TypeVar

from storage.concurrency.tasks import give
from storage.domain.errors import StorageUnavailable
from storage.domain.limits import COMMAND_WEIGHT
from storage.redis.transport.client import Reply
from storage.redis.transport.command import Command

Store = int | None
P = TypeVar("P")


class StoreChanged(StorageUnavailable):
    """The store was replaced, or has lost data; nothing happened.

    A caller that repeats the call makes it for the present store: engines do, so few callers see this.
    """


class Coalescer(Protocol):
    """Conversion of several callers' parts to few commands, and of replies to their answers.

    Each part has one answer. Parts that are given to coalescers of equal `alike` are coalesced.
    """

    @property
    def alike(self) -> Hashable:
        """Key that is equal for all coalescers of the same operation."""
        ...

    @property
    def key(self) -> bytes:
        """One of the log's keys."""
        ...

    def commands(self, parts: Sequence[Any]) -> list[tuple[Command, int]]:
        """Return commands in order, each with the number of parts, from the first on, that it has."""
        ...

    def answers(self, parts: Sequence[Any], reply: Reply) -> Sequence[Any]:
        """Return the answer for each part of a command; an exception is raised to its caller."""
        ...

    def abandoned(self, part: Any, answer: Any) -> None:
        """Undo the answer to a caller that was cancelled after the command had been sent.

        A caller that was cancelled before that needs nothing: its part is not sent.
        """
        ...


class CoalescingKey:
    """Base of coalescers: equal for the same type and the same arguments."""

    __slots__ = ("alike",)

    def __init__(self, *arguments: Hashable) -> None:
        self.alike: Hashable = (type(self), *arguments)


class CoalescedCall:
    """One command and the caller that waits for its answer."""

    __slots__ = ("command", "done", "store")
    weight = COMMAND_WEIGHT
    count = 1
    size_bytes = 0  # small, except for a few

    def __init__(self, command: Command, done: "asyncio.Future[Reply]", store: Store) -> None:
        self.command = command
        self.done = done
        self.store = store

    def commands(self) -> list[Command]:
        """Return the commands to send: none for a caller that has gone."""
        return [] if self.done.done() else [self.command]

    def settle(self, replies: Sequence[Reply]) -> None:
        """Pass the answer to its caller."""
        for reply in replies:
            give(self.done, reply)


class Redirected(CoalescedCall):
    """A command redirected here by another server of a cluster. It is not redirected again."""

    __slots__ = ()


class CoalescedBatch:
    """Parts of several callers for the same operation on one log."""

    __slots__ = ("_counts", "_waiting", "gatherer", "parts", "size_bytes", "store", "weight")

    def __init__(self, gatherer: Coalescer, store: Store) -> None:
        self.gatherer = gatherer
        self.store = store
        self.parts: list[tuple[Any, asyncio.Future[Any]]] = []
        self.size_bytes = 0
        self.weight = 0

    @property
    def count(self) -> int:
        """Number of callers."""
        return len(self.parts)

    def commands(self) -> list[Command]:
        """Return the commands to send for the callers that still wait."""
        self._waiting = [(part, done) for part, done in self.parts if not done.done()]
        if not self._waiting:
            return []
        commands = self.gatherer.commands([part for part, _ in self._waiting])
        self._counts = [count for _, count in commands]
        return [command for command, _ in commands]

    def settle(self, replies: Sequence[Reply]) -> None:
        """Pass each caller its answer."""
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


Work = CoalescedCall | CoalescedBatch
"""Unit of a flush."""


def fail(works: Sequence[Work], error: Exception) -> None:
    """Pass an error to every caller of these calls."""
    for work in works:
        futures = (
            [work.done] if isinstance(work, CoalescedCall) else [done for _, done in work.parts]
        )
        for done in futures:
            give(done, error)


def runs_of(parts: Sequence[P], weight: Callable[[P], int], weight_max: int) -> list[list[P]]:
    """Divide the parts, in order, into runs that weigh at most `weight_max`.

    A part that is heavier by itself is a run of its own.
    """
    runs: list[list[P]] = [[]]
    total = 0
    for part in parts:
        total += weight(part)
        if runs[-1] and total > weight_max:
            runs.append([])
            total = weight(part)
        runs[-1].append(part)
    return runs
