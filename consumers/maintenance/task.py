"""Maintenance task: a periodic piece of work, and helpers for bounded rounds."""

from collections.abc import Awaitable, Callable

import msgspec

from storage.bootstrap import Storage
from storage.domain.errors import QueueNotFound, StreamNotFound

_ROUNDS_PER_VISIT = 20  # so that a busy queue does not delay the others


class MaintenanceTask(msgspec.Struct, frozen=True):
    """A periodic task, with its minimum interval."""

    name: str
    every_ms: int
    work: Callable[[Storage], Awaitable[object]]


async def drain(visit: Callable[[], Awaitable[int]]) -> int:
    """Repeat a bounded visit while it finds work, a bounded number of times."""
    done = 0
    for _ in range(_ROUNDS_PER_VISIT):
        try:
            count = await visit()
        except (QueueNotFound, StreamNotFound):
            break  # deleted since it was listed
        done += count
        if not count:
            break
    return done
