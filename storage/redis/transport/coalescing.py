"""Calls that wait for the next flush: single, or coalesced with equal operations on a log.

    callers ──▶ flush queue ──▶ flush ─┬─ commands ──▶ flush worker
                                       └◀─ replies ──

A worker takes a flush, asks it once for its commands, and gives it the replies once. A flush distributes them to the
callers.
"""

import asyncio
from collections.abc import Hashable, Sequence
from typing import Any, Protocol, TypeVar

from storage.concurrency.tasks import give
from storage.domain.errors import StorageBusy
from storage.domain.limits import (
    COMMAND_WEIGHT,
    FLUSH_BYTES_MAX,
    FLUSH_CALLS_MAX,
    FLUSH_WEIGHT_MAX,
)
from storage.hot_store.errors import StoreChanged
from storage.redis.transport.client import Reply
from storage.redis.transport.command import Command

Store = int | None
P = TypeVar("P")


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
        """Return the commands to send: none for a caller that has disconnected."""
        return [] if self.done.done() else [self.command]

    def settle(self, replies: Sequence[Reply]) -> None:
        """Pass the answer to its caller."""
        for reply in replies:
            give(self.done, reply)

    def fail(self, error: Exception) -> None:
        """Raise an error to the caller."""
        give(self.done, error)


class Redirected(CoalescedCall):
    """A command redirected here by another server of a cluster. It is not redirected again."""

    __slots__ = ()


class CoalescedBatch:
    """Parts of several callers for the same operation on one log."""

    __slots__ = (
        "_runs",
        "_waiting",
        "count",
        "gatherer",
        "parts",
        "size_bytes",
        "store",
        "weight",
    )

    def __init__(self, gatherer: Coalescer, store: Store) -> None:
        self.gatherer = gatherer
        self.store = store
        self.parts: list[tuple[Any, asyncio.Future[Any]]] = []
        self.count = 0  # number of parts
        self.size_bytes = 0
        self.weight = 0

    def commands(self) -> list[Command]:
        """Return the commands to send for the callers that still wait."""
        self._waiting = [(part, done) for part, done in self.parts if not done.done()]
        if not self._waiting:
            return []
        self._runs = self.gatherer.commands([part for part, _ in self._waiting])
        return [command for command, _ in self._runs]

    def settle(self, replies: Sequence[Reply]) -> None:
        """Pass each caller its answer."""
        start = 0
        for (_, count), reply in zip(self._runs, replies, strict=True):
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
            if not done.done():
                give(done, answer)
            elif done.cancelled() and not isinstance(answer, Exception):
                self.gatherer.abandoned(part, answer)

    def fail(self, error: Exception) -> None:
        """Raise an error to every caller."""
        for _, done in self.parts:
            give(done, error)


Work = CoalescedCall | CoalescedBatch
"""Unit of a flush."""


class Flush:
    """Work that is sent together."""

    __slots__ = ("_planned", "_works")

    def __init__(self, works: list[Work]) -> None:
        self._works = works
        self._planned: list[tuple[Work, list[Command]]] = []

    def commands(self, store: Store) -> list[Command]:
        """Return the commands to send, in order. Calls that were made for another store fail."""
        for work in self._works:
            if work.store is not None and work.store != store:
                work.fail(StoreChanged())
            elif commands := work.commands():
                self._planned.append((work, commands))
        return [command for _, commands in self._planned for command in commands]

    def answered(
        self, replies: Sequence[Reply]
    ) -> list[tuple[Work, list[Command], Sequence[Reply]]]:
        """Return the work with its commands and their replies, given those to all commands."""
        results: list[tuple[Work, list[Command], Sequence[Reply]]] = []
        position = 0
        for work, commands in self._planned:
            own = replies[position : position + len(commands)]
            position += len(commands)
            results.append((work, commands, own))
        return results

    def settle(self, replies: Sequence[Reply]) -> None:
        """Pass the replies to all commands to the callers."""
        for work, _, own in self.answered(replies):
            work.settle(own)

    def fail(self, error: Exception) -> None:
        """Raise an error to every caller that has no answer."""
        for work in self._works:
            work.fail(error)


class FlushQueue:
    """Work that waits for a flush. `weight`: that of all of it."""

    def __init__(self, callers_max: int) -> None:
        self.weight = 0
        self._callers_max = callers_max
        self._callers = 0
        self._works: list[Work] = []
        self._batches: dict[Hashable, CoalescedBatch] = {}  # those that take more parts
        self._loop = asyncio.get_running_loop()

    def call(self, command: Command, store: Store) -> "asyncio.Future[Reply]":
        """Add one command. Raises StorageBusy."""
        return self._add(CoalescedCall(command, self._loop.create_future(), store))

    def redirect(self, command: Command, store: Store) -> "asyncio.Future[Reply]":
        """Add a redirected command. Raises StorageBusy."""
        return self._add(Redirected(command, self._loop.create_future(), store))

    def gather(
        self, gatherer: Coalescer, part: Any, size_bytes: int, weight: int, store: Store
    ) -> "asyncio.Future[Any]":
        """Add a part to those of equal gatherers. Raises StorageBusy."""
        if self._callers >= self._callers_max:
            raise StorageBusy
        self._callers += 1
        self.weight += weight
        done: asyncio.Future[Any] = self._loop.create_future()
        alike = gatherer.alike
        batch = self._batches.get(alike)
        if batch is None:
            batch = self._batches[alike] = CoalescedBatch(gatherer, store)
            self._works.append(batch)
        batch.parts.append((part, done))
        batch.count += 1
        batch.size_bytes += size_bytes
        batch.weight += weight
        if batch.size_bytes >= FLUSH_BYTES_MAX or batch.weight >= FLUSH_WEIGHT_MAX:
            del self._batches[alike]  # full: the next part starts another batch
        return done

    def _add(self, call: CoalescedCall) -> "asyncio.Future[Reply]":
        if self._callers >= self._callers_max:
            raise StorageBusy
        self._callers += 1
        self.weight += COMMAND_WEIGHT
        self._works.append(call)
        return call.done

    def take(self) -> Flush:
        """Remove the first work, and return it as a flush.

        Up to FLUSH_CALLS_MAX calls, and about FLUSH_BYTES_MAX or FLUSH_WEIGHT_MAX.
        """
        works: list[Work] = []
        size_bytes = weight = 0
        for work in self._works[:FLUSH_CALLS_MAX]:
            if size_bytes >= FLUSH_BYTES_MAX or weight >= FLUSH_WEIGHT_MAX:
                break
            size_bytes += work.size_bytes
            weight += work.weight
            self._callers -= work.count
            if isinstance(work, CoalescedBatch) and (
                self._batches.get(work.gatherer.alike) is work
            ):
                del self._batches[work.gatherer.alike]
            works.append(work)
        del self._works[: len(works)]
        self.weight -= weight
        return Flush(works)

    def fail(self, error: Exception) -> None:
        """Raise an error to every waiting caller."""
        for work in self._works:
            work.fail(error)


def runs_of(parts: Sequence[P], weights: Sequence[int], weight_max: int) -> list[list[P]]:
    """Divide the parts, in order, into runs that weigh at most `weight_max`.

    A part that is heavier by itself is a run of its own.
    """
    if sum(weights) <= weight_max:
        return [list(parts)]
    runs: list[list[P]] = [[]]
    total = 0
    for part, own in zip(parts, weights, strict=True):
        total += own
        if runs[-1] and total > weight_max:
            runs.append([])
            total = own
        runs[-1].append(part)
    return runs
