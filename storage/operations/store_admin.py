"""Stores of the deployment: their status, and changes of the replica set."""

from typing import Protocol
from urllib.parse import unquote, urlsplit

import msgspec

from storage.domain.errors import ReplicaSetRefused
from storage.domain.replication.replica_set import (
    MemberRole,
    MemberState,
    MemberStatus,
    Phase,
    ReplicaSet,
    ReplicaSetStatus,
)
from storage.hot_store.members import WriteOutcome
from storage.hot_store.servers import HotServers
from storage.postgres.repositories.offset_reservations import StoreIdentities
from storage.settings import Durability, StorageSettings

_REDIS_PORT = 6379


class Copies(msgspec.Struct, frozen=True):
    """Number of stores with the data, and of those that a write waits for.

    None where an engine replicates by itself.
    """

    replication_factor: int | None
    min_insync_replicas: int | None


class ReplicaSetControl(Protocol):
    """Verbs on the replica set, for operators.

    They raise ReplicaSetRefused where the replica set does not permit the change now, StorageUnavailable without Postgres.
    """

    async def status(self) -> ReplicaSetStatus:
        """Return the replica set and the status of its members, away if they do not answer."""
        ...

    async def current(self) -> ReplicaSet:
        """Return the replica set, while Postgres is away as it was read last."""
        ...

    async def confirm_write(self) -> WriteOutcome:
        """Write to the primary, and wait until enough replicas have it on disk."""
        ...

    async def switch_over(self, to: str | None = None) -> ReplicaSet:
        """Make another member the primary: `to`, or the one that is furthest."""
        ...

    async def replace(self, old: str, new: str) -> ReplicaSet:
        """Replace a permanently lost member by an empty store."""
        ...

    async def add(self, address: str) -> ReplicaSet:
        """Add a member."""
        ...

    async def remove(self, address: str) -> ReplicaSet:
        """Remove a member."""
        ...

    async def set_min_insync(self, count: int) -> ReplicaSet:
        """Set the number of members that must have a write before it is acknowledged."""
        ...

    async def recover(self, source: str, *, accept_loss: bool) -> ReplicaSet:
        """Promote what is left without a quorum; what only the lost members had is lost."""
        ...


class StoreAdmin:
    """Stores of the deployment, replicated or one.

    `durability` is that of the deployment.
    """

    def __init__(
        self,
        store: HotServers,
        identities: StoreIdentities,
        settings: StorageSettings,
        replica_set: ReplicaSetControl | None = None,
    ) -> None:
        self.durability: Durability = settings.durability
        self._store = store
        self._identities = identities
        self._settings = settings
        self._replica_set = replica_set

    @property
    def is_replica_set(self) -> bool:
        """True if Postgres names the primary among several stores."""
        return self._replica_set is not None

    @property
    def replica_set(self) -> ReplicaSetControl:
        """The replica set. Raises ReplicaSetRefused where there is one store."""
        if self._replica_set is None:
            raise ReplicaSetRefused(
                "The deployment has one store and no replica set; durability=replicated and the addresses of"
                " several stores make one."
            )
        return self._replica_set

    async def status(self) -> ReplicaSetStatus:
        """Return the members and their status; one store is its own primary, with term 0.

        Raises StorageUnavailable when Postgres, or the only store, is unreachable.
        """
        if self._replica_set is not None:
            return await self._replica_set.status()
        return await self._single_store()

    async def copies(self) -> Copies:
        """Return the number of copies of the data. Raises StorageUnavailable, StorageBusy."""
        if self._replica_set is not None:
            replica_set = await self._replica_set.current()
            return Copies(len(replica_set.members), replica_set.min_insync_replicas)
        return Copies(None, None) if self.durability == "replicated" else Copies(1, 1)

    async def _single_store(self) -> ReplicaSetStatus:
        address = _address(self._settings.redis_url)
        figures = await self._store.figures()
        identity = await self._identities.read()
        replica_set = ReplicaSet(
            members=(address,),
            primary=address,
            term=0,
            epoch=identity.epoch,
            phase=Phase.NORMAL,
            min_insync_replicas=1,
        )
        member = MemberStatus(
            address=address,
            role=MemberRole.PRIMARY,
            state=MemberState.INSYNC,
            version=figures.version,
            memory_used_bytes=figures.memory_used_bytes,
            memory_max_bytes=figures.memory_max_bytes,
        )
        return ReplicaSetStatus(replica_set=replica_set, members=(member,))


def _address(redis_url: str) -> str:
    """Return the address in a URL, without its password; of a unix socket, its path."""
    split = urlsplit(redis_url)
    if split.scheme == "unix":
        return unquote(split.path)
    host = split.netloc.rpartition("@")[2]
    return host if "," in host or host.rpartition("]")[2].count(":") else f"{host}:{_REDIS_PORT}"
