"""What the sweeper does for the store as a whole; queues and streams see to themselves."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.names import LogId
from storage.postgres.advisory_lock import alone
from storage.postgres.database import Database
from storage.postgres.repositories.offset_reservations import StoreIdentities
from storage.redis.cluster_store import HotStore
from storage.redis.keys import LogAddress
from storage.redis.streams.logs import HotLogs


class Maintenance:
    """Duties that one process at a time does for all. All raise StorageUnavailable."""

    def __init__(
        self,
        logs: HotLogs,
        store: HotStore,
        identities: StoreIdentities,
        catalog: Catalog,
        database: Database,
    ) -> None:
        self._logs = logs
        self._store = store
        self._identities = identities
        self._catalog = catalog
        self._database = database

    @asynccontextmanager
    async def alone(self, duty: str) -> AsyncGenerator[bool]:
        """Whether this process has the duty for the length of the block: a Postgres advisory lock."""
        async with alone(self._database, duty) as mine:
            yield mine

    async def beat(self) -> None:
        """Raise the beacon in the hot store, then in Postgres: a store restored from a copy is behind."""
        identity = await self._identities.read()
        await self._identities.beat(await self._store.beat(), epoch=identity.epoch)

    async def bury_deleted(self) -> int:
        """Bury again what was deleted, in case the deletion could not; forget what no cache can know.

        Gives the number of logs forgotten.
        """
        after: LogId = ""
        while page := await self._catalog.deleted_logs(0, after=after):
            for namespace, log_id in page:
                await self._logs.bury(LogAddress(namespace, log_id))
            after = page[-1][1]
        forgotten = await self._catalog.deleted_logs(limits.TOMBSTONE_MS)
        for namespace, log_id in forgotten:
            await self._logs.forget(LogAddress(namespace, log_id))
        await self._catalog.forget_deleted([log_id for _, log_id in forgotten])
        return len(forgotten)
