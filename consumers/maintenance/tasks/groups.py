"""Maintenance of consumer groups: rebalances, and records that all groups have read."""

from contextlib import suppress
from functools import partial

from consumers.maintenance.task import MaintenanceTask
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import StreamNotFound
from storage.domain.streams.stream import Stream


async def rebalance_groups(storage: Storage) -> int:
    """Rebalance every consumer group: silent members leave, and others get their shards."""
    return await storage.groups.rebalance_all()


async def delete_read_records(storage: Storage) -> None:
    """Visit every stream whose records are deleted once all its groups have read them."""
    async for stream in storage.catalog.iter_streams():
        if stream.spec.drop_when_read:
            visit = partial(_delete_read, storage, stream)
            await storage.isolation.visit("read", f"streams/{stream.name}", visit, None)


async def _delete_read(storage: Storage, stream: Stream) -> None:
    with suppress(StreamNotFound):  # deleted since it was listed
        await storage.groups.delete_read(stream)


TASKS = (
    MaintenanceTask("groups", 1 * limits.SECOND_MS, rebalance_groups),
    MaintenanceTask("read", 10 * limits.SECOND_MS, delete_read_records),
)
