"""Outbox: transfer of entries across slots, each once, whatever fails in between.

    1 the source puts an entry among its pending ones, in the same script that decides about it
    2 the target applies it, and recognizes one that was applied before
    3 the source clears it

Whoever finds pending entries does steps 2 and 3: the caller of step 1, or a sweep. A step may be done twice, also by two
processes concurrently. Dead letters, moves and sources transfer through this; either end is a queue or a stream.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from storage.domain import limits

E = TypeVar("E")
T = TypeVar("T")


class PendingEntries(NamedTuple, Generic[E, T]):
    """Pending entries by target; None: those without one. `is_last`: nothing was behind them."""

    by_target: Mapping[T | None, Sequence[E]]
    is_last: bool


class Outbox(Protocol[E, T]):
    """Pending entries of one source."""

    async def pending(self) -> PendingEntries[E, T]:
        """Return the first pending entries."""
        ...

    async def deliver(self, target: T, entries: Sequence[E]) -> bool:
        """Apply entries to their target (step 2); return False if there is no such target."""
        ...

    async def clear(self, target: T | None, entries: Sequence[E], *, delivered: bool) -> None:
        """Clear delivered entries (step 3), or put back those that have no target."""
        ...


async def transfer(outbox: Outbox[E, T]) -> int:
    """Deliver and clear all pending entries of an outbox; return how many were cleared.

    Entries that were read too long ago are read again, because a target may have forgotten by now that it has them. Raises
    what the target raises; the entries stay pending.
    """
    loop = asyncio.get_running_loop()
    cleared = 0
    while True:
        until = loop.time() + limits.MOVE_STEP_MS_MAX / limits.SECOND_MS
        pending = await outbox.pending()
        for target, entries in pending.by_target.items():
            if loop.time() > until:
                break
            delivered = target is not None and await outbox.deliver(target, entries)
            await outbox.clear(target, entries, delivered=delivered)
            cleared += len(entries)
        else:
            if pending.is_last:
                return cleared
