"""Bootstrap of the hot store: one store or a cluster, or a replica set and its controller."""

import os
import secrets
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

from storage.concurrency.tasks import in_background
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.replication.member_urls import member_addresses
from storage.domain.replication.replica_set import PrimaryChange
from storage.log.replica_set_epoch import ReplicaSetEpoch
from storage.log.store_epoch import StoreEpoch
from storage.postgres.database import Database, open_database
from storage.postgres.listener import Listener
from storage.postgres.repositories.leases import LeaseRows
from storage.postgres.repositories.offset_reservations import StoreIdentities
from storage.postgres.repositories.replica_set import REPLICA_SET_CHANNEL, ReplicaSetRows
from storage.redis.cluster_store import RedisServers
from storage.redis.member_store import RedisMembers
from storage.redis.transport.primary import ReplicaSetNodes
from storage.redis.transport.topology import Nodes
from storage.replication.controller import ReplicationController
from storage.replication.dissolution import dissolve
from storage.replication.engine import ReplicaSetEngine
from storage.settings import StorageSettings


class HotStore(NamedTuple):
    """Servers of the hot store, their epoch, and the replica set that they form, if any."""

    nodes: Nodes
    servers: RedisServers
    epoch: StoreEpoch | ReplicaSetEpoch
    replica_set: ReplicaSetEngine | None = None


@asynccontextmanager
async def open_hot_store(
    settings: StorageSettings,
    open_nodes: Callable[[str], Nodes],
    database: Database,
    listener: Listener,
    clock: Clock,
    *,
    on_primary_change: Callable[[PrimaryChange], object],
) -> AsyncGenerator[HotStore]:
    """Open the hot store; the controller of a replica set runs as long as it is open.

    The listener must not run yet. A replica set has connections to Postgres of its own: the others may all be in use by calls
    that wait for its primary.
    """
    if not settings.has_replica_set:
        only = open_nodes(settings.redis_url)
        only_servers = RedisServers(only)
        is_replicated = settings.durability == "replicated"
        epoch = StoreEpoch(only_servers, StoreIdentities(database), is_replicated=is_replicated)
        yield HotStore(only, only_servers, epoch)
        return
    async with AsyncExitStack() as stack:
        connections = limits.REPLICATION_CONNECTIONS + 1  # of which one is for a listener
        own = settings.model_copy(update={"postgres_connections_max": connections})
        database = await stack.enter_async_context(open_database(own))
        rows = ReplicaSetRows(database)
        nodes = ReplicaSetNodes(settings.redis_url)
        servers = RedisServers(nodes)
        members_epoch = ReplicaSetEpoch(nodes, servers, rows.read)
        nodes.locate = members_epoch.check
        listener.subscribe(
            REPLICA_SET_CHANNEL, lambda _: members_epoch.changed(), members_epoch.changed
        )
        members = RedisMembers(settings.redis_url)
        stack.push_async_callback(members.close)
        controller = ReplicationController(
            rows=rows,
            members=members,
            leases=LeaseRows(database, clock),
            holder=f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}",
            addresses=member_addresses(settings.redis_url),
            min_insync_replicas=settings.min_insync,
            listener=listener,
            on_primary_change=on_primary_change,
        )
        await stack.enter_async_context(in_background(controller.run(), "replication-controller"))
        engine = ReplicaSetEngine(rows, members, on_primary_change)
        yield HotStore(nodes, servers, members_epoch, engine)


async def leave_replica_set(settings: StorageSettings, remaining: str) -> None:
    """End the replica set; its member `remaining` continues alone. Nothing else may run.

    Raises StorageUnavailable, ReplicaSetRefused.
    """
    members = RedisMembers(settings.redis_url)
    try:
        async with open_database(settings) as database:
            await dissolve(ReplicaSetRows(database), members, remaining)
    finally:
        await members.close()
