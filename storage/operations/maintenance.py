"""Store-wide maintenance for the sweeper; queues and streams maintain themselves."""

from collections.abc import Awaitable, Callable, Mapping

import attrs

from storage.catalog.catalog import Catalog
from storage.catalog.witness import CatalogWitness
from storage.concurrency.isolation import Isolation
from storage.concurrency.leader_election import LeaderElection, LeaderLeases
from storage.domain import limits
from storage.domain.log.address import LogAddress
from storage.domain.names import LogId
from storage.domain.presence import LeaseStore
from storage.hot_store.log_store import LogStore
from storage.hot_store.servers import HotServers
from storage.postgres.repositories.offset_reservations import StoreIdentities


@attrs.define(eq=False, slots=False, kw_only=True)
class Maintenance:
    """Maintenance tasks that one process runs for all, and the election of that process.

    All raise StorageUnavailable.
    """

    _logs: LogStore
    _store: HotServers
    _identities: StoreIdentities
    _witness: CatalogWitness
    _catalog: Catalog
    _leases: Mapping[LeaseStore, LeaderLeases]
    _isolation: Isolation
    _epoch: int | None = attrs.field(default=None, init=False)

    def election(self, store: LeaseStore, holder: str) -> LeaderElection:
        """Return a candidate for the lease of the tasks that need a store."""
        return LeaderElection(self._leases[store], "maintenance", holder)

    async def advance_marker(self) -> None:
        """Advance the restore marker in the hot store, then in Postgres.

        A store restored from a copy is behind. The catalog's version becomes the same in both.
        """
        if self._epoch is None:
            self._epoch = (await self._identities.read()).epoch
        if not await self._identities.beat(await self._store.beat(), epoch=self._epoch):
            self._epoch = None  # the store was replaced: the next round reads its epoch
        await self._witness.level()

    async def tombstone_deleted(self) -> int:
        """Write tombstones of deleted logs again; delete those too old for any cache.

        Again, in case the deletion could not write them. Returns the number of deleted tombstones.
        """
        after: LogId = ""
        while page := await self._catalog.deleted_logs(0, after=after):
            for namespace, log_id in page:
                await self._visit(namespace, log_id, self._logs.tombstone)
            after = page[-1][1]
        deleted = [
            log_id
            for namespace, log_id in await self._catalog.deleted_logs(limits.TOMBSTONE_MS)
            if await self._visit(namespace, log_id, self._logs.delete_tombstone)
        ]
        await self._catalog.delete_tombstoned(deleted)
        return len(deleted)

    async def _visit(
        self, namespace: str, log_id: LogId, work: Callable[[LogAddress], Awaitable[object]]
    ) -> bool:
        """Return whether the work on one log succeeded."""

        async def visit() -> bool:
            await work(LogAddress(namespace, log_id))
            return True

        return await self._isolation.visit(
            "deleted", f"logs/{namespace}/{log_id}", visit, skipped=False
        )
