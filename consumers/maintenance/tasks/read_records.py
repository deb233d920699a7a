"""Records that all groups have read: deleted where the stream says so."""

from contextlib import suppress

from consumers.maintenance.task import maintenance_task, visit_streams
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import StreamNotFound
from storage.domain.presence import LeaseStore
from storage.domain.streams.stream import Stream


@maintenance_task("read", LeaseStore.POSTGRES, period_ms=10 * limits.SECOND_MS)
async def delete_read_records(storage: Storage) -> int:
    """Visit every stream whose records are deleted once all its groups have read them."""
    return await visit_streams(storage, "read", _delete_read)


async def _delete_read(storage: Storage, stream: Stream) -> int:
    if stream.spec.drop_when_read:
        with suppress(StreamNotFound):  # deleted since it was listed
            await storage.groups.delete_read(stream)
    return 0
