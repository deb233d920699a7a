"""Retention of streams: records that it no longer covers are deleted.

Streams that are not archived need the hot store alone, so they are trimmed while Postgres is unreachable too.
"""

from functools import partial

from consumers.maintenance.task import (
    TRIM_ENTRIES_MAX,
    drain,
    is_archived,
    maintenance_task,
    visit_streams,
)
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore
from storage.domain.streams.stream import Stream


@maintenance_task("streams", LeaseStore.HOT_STORE, period_ms=30 * limits.SECOND_MS)
async def trim_streams(storage: Storage) -> int:
    """Visit every stream that is not archived; return the number of items deleted."""
    return await visit_streams(storage, "streams", _trim)


async def _trim(storage: Storage, stream: Stream) -> int:
    done = 0
    if stream.spec.key_index:
        done += await drain(partial(storage.streams.sweep_key_index, stream))
    if not is_archived(storage, stream):
        done += await drain(partial(storage.streams.trim, stream.name, TRIM_ENTRIES_MAX, stream))
    return done
