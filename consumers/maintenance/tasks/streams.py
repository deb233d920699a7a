"""Maintenance of streams: retention, interrupted reshards and on-demand scaling."""

from collections.abc import Awaitable, Callable
from functools import partial

from consumers.maintenance.task import MaintenanceTask, drain
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import StreamBusy, StreamNotFound
from storage.domain.streams.stream import Stream, StreamMode

_ENTRIES_PER_TRIM = 10_000


async def trim_streams(storage: Storage) -> int:
    """Visit every stream: delete records that its retention no longer covers."""
    return await _visit_each(storage, "streams", _trim)


async def finish_reshards(storage: Storage) -> int:
    """Visit every stream: finish a reshard whose process died before its end."""
    return await _visit_each(storage, "reshards", _finish_reshard)


async def scale_streams(storage: Storage) -> int:
    """Visit every on-demand stream: adjust its shards to its load."""
    return await _visit_each(storage, "loads", _scale)


async def _visit_each(
    storage: Storage, task: str, visit: Callable[[Storage, Stream], Awaitable[int]]
) -> int:
    done = 0
    async for stream in storage.catalog.iter_streams():
        work = partial(visit, storage, stream)
        done += await storage.isolation.visit(task, f"streams/{stream.name}", work, 0)
    return done


async def _trim(storage: Storage, stream: Stream) -> int:
    done = await drain(partial(storage.streams.trim, stream.name, _ENTRIES_PER_TRIM))
    if stream.spec.key_index:
        done += await drain(partial(storage.streams.sweep_key_index, stream.name))
    if len(stream.open_shards) < len(stream.shards):
        done += await drain(partial(storage.streams.expire_shards, stream.name))
    return done


async def _scale(storage: Storage, stream: Stream) -> int:
    if stream.spec.mode is not StreamMode.ON_DEMAND:
        return 0
    try:
        return await storage.streams.scale(stream.name)
    except (StreamNotFound, StreamBusy):
        return 0


async def _finish_reshard(storage: Storage, stream: Stream) -> int:
    if not stream.opening and stream.shards_target is None:
        return 0
    try:
        return await storage.streams.finish_reshard(stream.name)
    except (StreamNotFound, StreamBusy):
        return 0  # deleted since it was listed, or another process works on it


TASKS = (
    MaintenanceTask("reshards", 10 * limits.SECOND_MS, finish_reshards),
    MaintenanceTask("loads", 20 * limits.SECOND_MS, scale_streams),
    MaintenanceTask("streams", 30 * limits.SECOND_MS, trim_streams),
)
