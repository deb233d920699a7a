"""Retention of archived streams, and expiry of closed shards: what needs Postgres."""

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


@maintenance_task("tiers", LeaseStore.POSTGRES, period_ms=30 * limits.SECOND_MS)
async def trim_archived_streams(storage: Storage) -> int:
    """Visit every archived stream, and closed shards; return the number of items deleted."""
    return await visit_streams(storage, "tiers", _trim_archived)


async def _trim_archived(storage: Storage, stream: Stream) -> int:
    done = 0
    if is_archived(storage, stream):
        done += await drain(partial(storage.streams.trim, stream.name, TRIM_ENTRIES_MAX, stream))
    if len(stream.open_shards) < len(stream.shards):
        done += await drain(partial(storage.streams.expire_shards, stream.name))
    return done
