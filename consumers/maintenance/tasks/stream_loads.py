"""Scaling of on-demand streams: their shards are adjusted to their load."""

from consumers.maintenance.task import maintenance_task, visit_streams
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import StreamBusy, StreamNotFound
from storage.domain.presence import LeaseStore
from storage.domain.streams.stream import Stream, StreamMode


@maintenance_task("loads", LeaseStore.POSTGRES, period_ms=20 * limits.SECOND_MS)
async def scale_streams(storage: Storage) -> int:
    """Visit every on-demand stream; return the number of reshards begun."""
    return await visit_streams(storage, "loads", _scale)


async def _scale(storage: Storage, stream: Stream) -> int:
    if stream.spec.mode is not StreamMode.ON_DEMAND:
        return 0
    try:
        return await storage.streams.scale(stream.name)
    except (StreamNotFound, StreamBusy):
        return 0
