"""Primary of a replica set: the one member that takes writes, and connections to it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection

from storage.domain.replication.member_urls import member_addresses, member_url
from storage.domain.replication.replica_set import ReplicaSet
from storage.hot_store.servers import PrimaryConnections
from storage.redis.transport.client import make_connection, open_pool
from storage.redis.transport.topology import Master, Nodes


class ReplicaSetNodes(Nodes, PrimaryConnections):
    """Nodes of a replica set: `seed` is the URL of the primary that Postgres names.

    `generation` rises when the replica set has changed; connections of an earlier generation are not used. `locate` calls `use`
    with the replica set; until then `seed` is any member, which may be a replica, or away.
    """

    is_replicated = True

    def __init__(self, url: str) -> None:
        self._url = url
        self.replica_set: ReplicaSet | None = None
        self.generation = 0
        self.locate: Callable[[], Awaitable[object]] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        super().__init__(member_url(url, member_addresses(url)[0]))
        self._is_alone = True
        self._primary_pool = _PrimaryPool(self)

    @property
    def acknowledging_replicas(self) -> int:
        return 0 if self.replica_set is None else self.replica_set.acknowledging_replicas

    async def masters(self) -> Sequence[Master]:
        if self.replica_set is None and self.locate is not None:
            await self.locate()
        return await super().masters()

    def use(self, replica_set: ReplicaSet) -> None:
        """Use the primary of this replica set from now on."""
        if replica_set == self.replica_set:
            return
        self.replica_set = replica_set
        self.seed = member_url(self._url, replica_set.primary)
        for url in self._listening.keys() - {self.seed}:
            self._close_later(self._listening.pop(url))

    def discard(self) -> None:
        """Use no present connection for another flush: the replica set has changed."""
        self.generation += 1

    def pool(self, url: str) -> "_PrimaryPool":
        return self._primary_pool

    def _close_later(self, client: Redis) -> None:
        """Close a subscriber's client: a machine that is gone would never end the subscription."""
        closing = asyncio.create_task(client.aclose())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


class _PrimaryPool:
    """Pool of connections to whichever member is the primary when one is made."""

    def __init__(self, nodes: ReplicaSetNodes) -> None:
        self._nodes = nodes
        self._pools: dict[str, ConnectionPool] = {}

    def make_connection(self) -> AbstractConnection:
        """Make a connection to the present primary."""
        url = self._nodes.seed
        pool = self._pools.get(url)
        if pool is None:
            pool = self._pools[url] = open_pool(url)
        return make_connection(pool)

    async def aclose(self) -> None:
        """Close the pools of all members."""
        for pool in self._pools.values():
            await pool.aclose()
