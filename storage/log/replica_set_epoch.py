"""Store epoch of a replica set: the epoch of the primary that Postgres names."""

import asyncio
from collections.abc import Awaitable, Callable

from storage.concurrency.single_flight import SingleFlight
from storage.domain.errors import StorageBusy, StorageUnavailable
from storage.domain.replication.replica_set import Phase, ReplicaSet
from storage.hot_store.servers import HotServers, PrimaryConnections

_CHANGING = "The stores are changing their primary; try again."


class ReplicaSetEpoch:
    """The fencing epoch sent with this process's appends, read where a controller decides it.

    A process that cannot reach Postgres goes on with the replica set that it knows: an old primary gets no
    acknowledgements from its replicas, so nothing that it takes is confirmed.
    """

    def __init__(
        self,
        primary: PrimaryConnections,
        store: HotServers,
        read: Callable[[], Awaitable[ReplicaSet | None]],
    ) -> None:
        self._primary = primary
        self._store = store
        self._read = read
        self._reads = SingleFlight[str, ReplicaSet]()
        self._last_read: ReplicaSet | None = None
        self._checked_epoch = 0
        self._checking = asyncio.Lock()
        self.current = 0

    def changed(self) -> None:
        """Stop using the present connections: the replica set has changed."""
        self._primary.discard()

    async def check(self) -> int:
        """Use the primary that Postgres names; return its epoch.

        Raises StorageUnavailable while it is being changed.
        """
        replica_set = await self._reads.run_fresh("", self._replica_set)
        if replica_set.phase is not Phase.NORMAL:
            raise StorageUnavailable(_CHANGING)
        self._primary.use(replica_set)
        async with self._checking:
            if replica_set.epoch != self._checked_epoch:
                await self._store.check_layout()
                self._checked_epoch = replica_set.epoch
        self.current = replica_set.epoch
        return self.current

    async def refresh(self, at_least: int) -> None:
        """Read the epoch again, after another process has a newer one.

        Raises StorageUnavailable if it is not decided yet.
        """
        if await self.check() < at_least:
            raise StorageUnavailable(_CHANGING)

    async def _replica_set(self) -> ReplicaSet:
        try:
            read = await self._read()
        except (StorageUnavailable, StorageBusy) as error:
            if self._last_read is None:
                raise StorageUnavailable(error.detail) from error
            return self._last_read
        if read is None:
            raise StorageUnavailable("The stores have no primary yet; try again.")
        self._last_read = read
        return read
