"""Reshards of streams: those whose process died are finished."""

from consumers.maintenance.task import maintenance_task, visit_streams
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import StreamBusy, StreamNotFound
from storage.domain.presence import LeaseStore
from storage.domain.streams.stream import Stream


@maintenance_task("reshards", LeaseStore.POSTGRES, period_ms=10 * limits.SECOND_MS)
async def finish_reshards(storage: Storage) -> int:
    """Visit every stream; return the number of reshards finished."""
    return await visit_streams(storage, "reshards", _finish)


async def _finish(storage: Storage, stream: Stream) -> int:
    if not stream.opening and stream.shards_target is None:
        return 0
    try:
        return await storage.streams.resharder.finish(stream.name)
    except (StreamNotFound, StreamBusy):
        return 0  # deleted since it was listed, or another process works on it
