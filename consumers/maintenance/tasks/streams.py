"""Maintenance of streams: retention, interrupted reshards and on-demand scaling."""

from consumers.maintenance.task import MaintenanceTask, drain
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import StreamBusy, StreamNotFound
from storage.domain.names import StreamName
from storage.domain.streams.stream import StreamMode

_ENTRIES_PER_TRIM = 10_000


async def trim_streams(storage: Storage) -> int:
    """Visit every stream: delete records that its retention no longer covers."""
    done = 0
    async for stream in storage.catalog.iter_streams():
        done += await drain(
            lambda name=stream.name: storage.streams.trim(name, _ENTRIES_PER_TRIM)  # type: ignore[misc]
        )
        if stream.spec.key_index:
            done += await drain(lambda name=stream.name: storage.streams.sweep_key_index(name))  # type: ignore[misc]
        if len(stream.open_shards) < len(stream.shards):
            done += await drain(lambda name=stream.name: storage.streams.expire_shards(name))  # type: ignore[misc]
    return done


async def finish_reshards(storage: Storage) -> int:
    """Visit every stream: finish a reshard whose process died before its end."""
    done = 0
    async for stream in storage.catalog.iter_streams():
        if stream.opening or stream.shards_target is not None:
            done += await _finish_reshard(storage, stream.name)
    return done


async def scale_streams(storage: Storage) -> int:
    """Visit every on-demand stream: adjust its shards to its load."""
    done = 0
    async for stream in storage.catalog.iter_streams():
        if stream.spec.mode is StreamMode.ON_DEMAND:
            done += await _scale(storage, stream.name)
    return done


async def _scale(storage: Storage, name: StreamName) -> int:
    try:
        return await storage.streams.scale(name)
    except (StreamNotFound, StreamBusy):
        return 0


async def _finish_reshard(storage: Storage, name: StreamName) -> bool:
    try:
        return await storage.streams.finish_reshard(name)
    except (StreamNotFound, StreamBusy):
        return False  # deleted since it was listed, or another process works on it


TASKS = (
    MaintenanceTask("reshards", 10 * limits.SECOND_MS, finish_reshards),
    MaintenanceTask("loads", 20 * limits.SECOND_MS, scale_streams),
    MaintenanceTask("streams", 30 * limits.SECOND_MS, trim_streams),
)
