"""Verbs on the servers of the hot store as a whole."""

from collections.abc import Sequence
from typing import Protocol

from storage.domain.log.store_epoch import StoreFacts, StoreIdentity
from storage.domain.replication.replica_set import ReplicaSet
from storage.domain.store_status import HotFigures, HotNode, SlowCommand


class PrimaryConnections(Protocol):
    """Connections to the primary of a replica set."""

    def use(self, replica_set: ReplicaSet) -> None:
        """Use the primary of this replica set from now on."""
        ...

    def discard(self) -> None:
        """Use no present connection for another flush."""
        ...


class HotServers(Protocol):
    """Queries to all masters that do not concern a single log.

    All raise StorageUnavailable, also when one master is unreachable.
    """

    async def run_id(self) -> str:
        """Return the ids of the server processes.

        They change after any restarted, or another one took its place.
        """
        ...

    async def facts(self, remembered: StoreIdentity) -> StoreFacts:
        """Return the store's state for `needs_new_epoch`: of a cluster, the worst of each fact."""
        ...

    async def check_layout(self) -> None:
        """Mark empty servers with our layout.

        Raises LayoutUnknown when one has another, RestoreUnfinished when a restore of a backup is not complete.
        """
        ...

    async def is_restoring(self) -> bool:
        """Return whether a backup is being restored into it, or was not restored completely."""
        ...

    async def write_epoch(self, epoch: int, beacon: int) -> None:
        """Mark the store with its epoch."""
        ...

    async def beat(self) -> int:
        """Increment the beacons, and return the lowest."""
        ...

    async def catalog_version(self) -> int:
        """Return the version of the catalog that the store has; 0 for none."""
        ...

    async def raise_catalog_version(self, at_least: int) -> int:
        """Raise the version of the catalog by 1, or more to reach `at_least`; return it.

        One caller at a time.
        """
        ...

    async def ping(self) -> str:
        """Return 'ok', or the problem: a full disk makes even PING fail."""
        ...

    async def nodes(self) -> Sequence[HotNode]:
        """Return the condition of each server, of a cluster also of the replicas."""
        ...

    async def memory(self) -> tuple[int, int]:
        """Return used and maximum bytes of the server nearest to its limit; 0 for no limit."""
        ...

    async def figures(self) -> HotFigures:
        """Return the aggregated figures of the servers."""
        ...

    async def slow_commands(self) -> tuple[SlowCommand, ...] | None:
        """Return the latest entries of the slow logs, or None where they may not be read."""
        ...
