"""Maintenance task: a periodic piece of work, and helpers for bounded rounds."""

from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from storage.bootstrap import Storage
from storage.concurrency.tasks import in_batches
from storage.domain import limits
from storage.domain.errors import QueueNotFound, StreamNotFound
from storage.domain.presence import LeaseStore
from storage.domain.streams.stream import Stream

TRIM_ENTRIES_MAX = 10_000
"""Maximum number of entries that one visit trims of a shard."""

_ROUNDS_PER_VISIT = 20  # so that a busy queue does not delay the others


Work = Callable[[Storage], Awaitable[int | None]]


class MaintenanceTask(msgspec.Struct, frozen=True):
    """A periodic task of the leader of a store.

    `work` returns the amount of work that there was. While there is none the period doubles, up to `idle_ms`; each pause is
    shortened at random by up to a tenth. A round that runs for longer than `timeout_ms` is cancelled.
    """

    name: str
    work: Work
    store: LeaseStore
    period_ms: int
    idle_ms: int
    timeout_ms: int


def maintenance_task(
    name: str,
    store: LeaseStore,
    *,
    period_ms: int,
    idle_ms: int = 0,
    timeout_ms: int = limits.MAINTENANCE_TASK_MS_MAX,
) -> Callable[[Work], MaintenanceTask]:
    """Make a task of a function; see `MaintenanceTask`."""
    return partial(
        MaintenanceTask,
        name,
        store=store,
        period_ms=period_ms,
        idle_ms=idle_ms,
        timeout_ms=timeout_ms,
    )


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


def is_archived(storage: Storage, stream: Stream) -> bool:
    """Return whether trimming the stream needs to know what is archived, which Postgres has."""
    return stream.spec.archive and storage.archive_admin.on


async def visit_streams(
    storage: Storage, task: str, visit: Callable[[Storage, Stream], Awaitable[int]]
) -> int:
    """Visit every stream, isolated from the others; return the sum of the results."""

    async def visit_one(stream: Stream) -> int:
        work = partial(visit, storage, stream)
        return await storage.isolation.visit(task, f"streams/{stream.name}", work, 0)

    streams = (await storage.catalog.all_streams()).values()
    return sum(await in_batches(streams, visit_one, limits.MAINTENANCE_CONCURRENCY_MAX))
