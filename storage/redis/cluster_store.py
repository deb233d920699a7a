"""The hot store as a whole: one server, or all masters of a cluster as if they were one.

Each master has a separate key for the store's epoch and beacon, in its first slot: so each of them reveals if it has
lost data. A master that received its first slot from another one has no such key yet; then all logs get a new epoch,
which reuses no offset.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

from storage.domain.errors import StorageUnavailable
from storage.domain.log.store_epoch import StoreFacts, StoreIdentity
from storage.domain.store_status import HotFigures, HotNode, SlowCommand
from storage.hot_store.servers import HotServers
from storage.redis.keys import STORE_KEY, VERSION_KEY
from storage.redis.server_store import SLOW_COMMANDS_MAX, HotServer
from storage.redis.transport.client import SlotMoved
from storage.redis.transport.topology import Master, Nodes, key_of_master

T = TypeVar("T")

_TRIES = 10
_TRIED_AGAIN_S = 0.1  # all servers of a cluster learn who has a slot within about a second


class RedisServers(HotServers):
    """Queries to all masters, combined."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    async def _servers(self) -> list[HotServer]:
        masters = await self._nodes.masters()
        if len(masters) == 1:
            return [HotServer(self._nodes.client(masters[0].url))]
        return [self._server(one) for one in masters]

    def _server(self, master: Master) -> HotServer:
        keys = [
            key_of_master(key, master, self._nodes.url_of(key.encode()))
            for key in (STORE_KEY, VERSION_KEY)
        ]
        return HotServer(self._nodes.client(master.url), *keys)

    async def _all(self, ask: Callable[[HotServer], Coroutine[Any, Any, T]]) -> list[T]:
        """Query each server; retry all when the topology was out of date because a slot has moved."""
        for _ in range(_TRIES - 1):
            try:
                return await self._once(ask)
            except SlotMoved:
                await asyncio.sleep(_TRIED_AGAIN_S)
        return await self._once(ask)

    async def _once(self, ask: Callable[[HotServer], Coroutine[Any, Any, T]]) -> list[T]:
        return list(await asyncio.gather(*map(ask, await self._servers())))

    async def run_id(self) -> str:
        return ",".join(await self._all(HotServer.run_id))

    async def facts(self, remembered: StoreIdentity) -> StoreFacts:
        reports = await self._all(lambda server: server.facts(remembered))
        if len(reports) == 1:
            return reports[0]
        known_replids = remembered.replid.split(",")
        epochs = {one.epoch for one in reports}
        return StoreFacts(
            epoch=epochs.pop() if len(epochs) == 1 else 0,
            beacon=min(one.beacon for one in reports),
            replid=",".join(sorted(one.replid for one in reports)),
            promoted=any(one.promoted and one.replid not in known_replids for one in reports),
            fsync_always=all(one.fsync_always for one in reports),
            restarted=any(one.replid not in known_replids for one in reports),
        )

    async def check_layout(self) -> None:
        await self._all(HotServer.check_layout)

    async def is_restoring(self) -> bool:
        return any(await self._all(HotServer.is_restoring))

    async def write_epoch(self, epoch: int, beacon: int) -> None:
        await self._all(lambda server: server.write_epoch(epoch, beacon))

    async def beat(self) -> int:
        return min(await self._all(HotServer.beat))

    async def catalog_version(self) -> int:
        return await (await self._master_of(STORE_KEY)).catalog_version()

    async def raise_catalog_version(self, at_least: int) -> int:
        replicas = self._nodes.acknowledging_replicas
        return await (await self._master_of(STORE_KEY)).raise_catalog_version(at_least, replicas)

    async def _master_of(self, key: str) -> HotServer:
        """Return the master that has a plain key: one of the whole store, not one of each master."""
        masters = await self._nodes.masters()
        url = masters[0].url if len(masters) == 1 else self._nodes.url_of(key.encode())
        return HotServer(self._nodes.client(url))

    async def ping(self) -> str:
        answers = await self._all(HotServer.ping)
        return next((one for one in answers if one != "ok"), "ok")

    async def nodes(self) -> Sequence[HotNode]:
        masters = await self._nodes.masters()
        if len(masters) == 1 and not self._nodes.is_cluster:
            report = await HotServer(self._nodes.client(masters[0].url)).report()
            return [HotNode(address="", report=report)]
        primaries = dict.fromkeys((master.url for master in masters), "")
        return await asyncio.gather(
            *(
                self._node(url, primary)
                for url, primary in (primaries | self._nodes.replicas).items()
            )
        )

    async def _node(self, url: str, primary: str) -> HotNode:
        try:
            report = await HotServer(self._nodes.client(url)).report()
        except StorageUnavailable:
            report = None
        return HotNode(address=_address(url), primary=_address(primary), report=report)

    async def memory(self) -> tuple[int, int]:
        return max(await self._all(HotServer.memory), key=_fullness)

    async def figures(self) -> HotFigures:
        servers = await self._all(HotServer.figures)
        first = servers[0]
        return HotFigures(
            flavor=first.flavor,
            version=first.version,
            role=first.role if len(servers) == 1 else f"{len(servers)} masters",
            uptime_s=min(one.uptime_s for one in servers),
            memory_used_bytes=sum(one.memory_used_bytes for one in servers),
            memory_max_bytes=sum(one.memory_max_bytes for one in servers),
            fragmentation=max(one.fragmentation for one in servers),
            clients=sum(one.clients for one in servers),
            commands_per_second=sum(one.commands_per_second for one in servers),
            keys=sum(one.keys for one in servers),
            aof_bytes=sum(one.aof_bytes for one in servers),
            aof_ok=all(one.aof_ok for one in servers),
            evicted_keys=sum(one.evicted_keys for one in servers),
        )

    async def slow_commands(self) -> tuple[SlowCommand, ...] | None:
        logs = [entry for entry in await self._all(HotServer.slow_commands) if entry is not None]
        if not logs:
            return None
        latest = sorted((entry for log in logs for entry in log), key=lambda entry: -entry.at_ms)
        return tuple(latest[:SLOW_COMMANDS_MAX])


def _address(url: str) -> str:
    """Return the address of a server, without the password in its URL."""
    return urlsplit(url).netloc.rpartition("@")[2]


def _fullness(memory: tuple[int, int]) -> tuple[float, int]:
    used, limit = memory
    return (used / limit if limit else 0.0, used)
