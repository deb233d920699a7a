"""The hot store as a whole: one server, or all masters of a cluster as if they were one.

Each master has a key of its own for the store's epoch and beacon, in the first slot that it has: so each of them gives
itself away that lost something. A master that got its first slot from another one has no such key yet; then all logs
get a new epoch, which reuses no offset.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from storage.domain.log.store_epoch import StoreFacts, StoreIdentity
from storage.domain.store_status import HotFigures, SlowCommand
from storage.redis.keys import STORE_KEY, VERSION_KEY
from storage.redis.server_store import SLOW_COMMANDS_SHOWN, HotServer
from storage.redis.transport.client import SlotElsewhere
from storage.redis.transport.topology import Master, Nodes, word_in_slot

T = TypeVar("T")

_TRIES = 10
_TRIED_AGAIN_S = 0.1  # who has a slot is known to all servers of a cluster within about a second


class HotStore:
    """Questions to all masters that are not about one log. All raise StorageUnavailable, also when one is away."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    async def _servers(self) -> list[HotServer]:
        masters = await self._nodes.masters()
        if len(masters) == 1:
            return [HotServer(self._nodes.client(masters[0].url))]
        return [self._server(one) for one in masters]

    def _server(self, one: Master) -> HotServer:
        keys = [_key_at(key, one, self._nodes) for key in (STORE_KEY, VERSION_KEY)]
        return HotServer(self._nodes.client(one.url), *keys)

    async def _all(self, ask: Callable[[HotServer], Coroutine[Any, Any, T]]) -> list[T]:
        """Ask each, and all anew when whoever named them did not know yet that a slot has moved."""
        for _ in range(_TRIES - 1):
            try:
                return await self._once(ask)
            except SlotElsewhere:
                await asyncio.sleep(_TRIED_AGAIN_S)
        return await self._once(ask)

    async def _once(self, ask: Callable[[HotServer], Coroutine[Any, Any, T]]) -> list[T]:
        return list(await asyncio.gather(*map(ask, await self._servers())))

    async def run_id(self) -> str:
        """Names the server processes: another one after any restarted, or another one took its place."""
        return ",".join(await self._all(HotServer.run_id))

    async def facts(self, remembered: StoreIdentity) -> StoreFacts:
        """What the store says of itself, for `needs_new_epoch`: of a cluster, what the worst of them says."""
        found = await self._all(lambda server: server.facts(remembered))
        if len(found) == 1:
            return found[0]
        known = remembered.replid.split(",")
        epochs = {one.epoch for one in found}
        return StoreFacts(
            epoch=epochs.pop() if len(epochs) == 1 else 0,
            beacon=min(one.beacon for one in found),
            replid=",".join(sorted(one.replid for one in found)),
            promoted=any(one.promoted and one.replid not in known for one in found),
            fsync_always=all(one.fsync_always for one in found),
            restarted=any(one.replid not in known for one in found),
        )

    async def check_layout(self) -> None:
        """Mark empty servers with our layout. Raises LayoutUnknown when one carries another,
        RestoreUnfinished when a backup is not restored to its end."""
        await self._all(HotServer.check_layout)

    async def is_restoring(self) -> bool:
        """Whether a backup is being restored into it, or was not to its end."""
        return any(await self._all(HotServer.is_restoring))

    async def write_epoch(self, epoch: int, beacon: int) -> None:
        """Mark the store with its epoch."""
        await self._all(lambda server: server.write_epoch(epoch, beacon))

    async def beat(self) -> int:
        """Raise the beacon, and give it: the lowest."""
        return min(await self._all(HotServer.beat))

    async def ping(self) -> str:
        """'ok', or what is wrong: a full disk makes even PING fail."""
        said = await self._all(HotServer.ping)
        return next((one for one in said if one != "ok"), "ok")

    async def setting(self, name: str) -> str | None:
        """A configuration value, all of them where they differ, or None where CONFIG is not allowed."""
        found = await self._all(lambda server: server.setting(name))
        values = sorted({one for one in found if one is not None})
        return ", ".join(values) if values else None

    async def info(self, *sections: str) -> dict[str, Any]:
        """INFO of some sections, of one of them."""
        [first, *_] = await self._servers()
        return await first.info(*sections)

    async def memory(self) -> tuple[int, int]:
        """What data uses and what it may, in bytes, of the server that is nearest to its limit; 0 for no limit."""
        return max(await self._all(HotServer.memory), key=_fullness)

    async def figures(self) -> HotFigures:
        """What the servers say of themselves, added up."""
        found = await self._all(HotServer.figures)
        first = found[0]
        return HotFigures(
            flavor=first.flavor,
            version=first.version,
            role=first.role if len(found) == 1 else f"{len(found)} masters",
            uptime_s=min(one.uptime_s for one in found),
            memory_used_bytes=sum(one.memory_used_bytes for one in found),
            memory_max_bytes=sum(one.memory_max_bytes for one in found),
            fragmentation=max(one.fragmentation for one in found),
            clients=sum(one.clients for one in found),
            commands_per_second=sum(one.commands_per_second for one in found),
            keys=sum(one.keys for one in found),
            aof_bytes=sum(one.aof_bytes for one in found),
            aof_ok=all(one.aof_ok for one in found),
            evicted_keys=sum(one.evicted_keys for one in found),
        )

    async def slow_commands(self) -> tuple[SlowCommand, ...] | None:
        """The latest of the slow logs, or None where they may not be read."""
        found = [one for one in await self._all(HotServer.slow_commands) if one is not None]
        if not found:
            return None
        latest = sorted((one for some in found for one in some), key=lambda one: -one.at_ms)
        return tuple(latest[:SLOW_COMMANDS_SHOWN])

    async def time_ms(self) -> int:
        """The clock of one of them."""
        [first, *_] = await self._servers()
        return await first.time_ms()


def _key_at(key: str, master: Master, nodes: Nodes) -> str:
    """A key of its own for each master: the plain one where that is, and one in the first slot at the others."""
    if nodes.url_of(key.encode()) == master.url:
        return key
    return key.replace("ms:", f"ms:{{{word_in_slot(master.slot)}}}:", 1)


def _fullness(memory: tuple[int, int]) -> tuple[float, int]:
    used, most = memory
    return (used / most if most else 0.0, used)
