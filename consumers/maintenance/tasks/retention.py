"""Retention of streams: records that it no longer covers are deleted."""

from functools import partial

from consumers.maintenance.task import MaintenanceTask, drain, visit_streams
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore
from storage.domain.streams.stream import Stream

_ENTRIES_PER_TRIM = 10_000


async def trim_streams(storage: Storage) -> int:
    """Visit every stream; return the number of items deleted."""
    return await visit_streams(storage, "streams", _trim)


async def _trim(storage: Storage, stream: Stream) -> int:
    done = await drain(partial(storage.streams.trim, stream.name, _ENTRIES_PER_TRIM, stream))
    if stream.spec.key_index:
        done += await drain(partial(storage.streams.sweep_key_index, stream.name))
    if len(stream.open_shards) < len(stream.shards):
        done += await drain(partial(storage.streams.expire_shards, stream.name))
    return done


TASK = MaintenanceTask(
    "streams",
    trim_streams,
    store=LeaseStore.HOT_STORE,
    period_ms=30 * limits.SECOND_MS,
    timeout_ms=limits.MAINTENANCE_TASK_MS_MAX,
)
