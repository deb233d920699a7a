"""Pipeline of the hot commands: calls that arrive during a flush leave in the next one.

    engines ──▶ the lanes to the server that has the key ─┬▶ its write lane
                                                          └▶ its read lane

Writes and reads have a lane each (`storage.redis.transport.connection_lane`), so that a read does not wait behind an
fsync. Equal operations on the same log can share one script call (`storage.redis.transport.coalescing`).

    never sent, or refused by the server    StorageUnavailable, StorageFull: nothing happened
    sent, and no answer                     OutcomeUnknown: the caller may retry with the same key
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from storage.domain.errors import OutcomeUnknown, StorageUnavailable
from storage.domain.histogram import LatencyBuffer
from storage.domain.limits import COMMAND_WEIGHT, PART_BYTES_SMALL, PART_WEIGHT, Limits
from storage.hot_store.retry import retry_store_changes
from storage.redis.scripts import script
from storage.redis.transport.client import ConnectionFactory, Reply
from storage.redis.transport.coalescing import Coalescer, Store
from storage.redis.transport.command import Argument, command_of
from storage.redis.transport.connection_lane import Lane, StoreLink
from storage.redis.transport.replicated_flush import ReplicatedReader, ReplicatedWriteLane
from storage.redis.transport.topology import Nodes


class _Route(NamedTuple):
    """Lanes to one server."""

    writes: Lane
    reads: Lane
    pool: ConnectionFactory

    async def close(self) -> None:
        await self.writes.close()
        await self.reads.close()
        await self.pool.aclose()


class Pipeline:
    """The hot store as seen by the engines: a write lane and a read lane to each server.

    `on_connect` runs after a connection is made and before anything is sent on it; it decides whether the store is the
    previous one (`storage.log.provisioner`), and identifies it. It raises StorageUnavailable when it cannot decide. Waiting
    calls that were made for a store with another identity are not sent: they may contain an epoch by which a store that
    has lost data would assign an offset again.

    In a cluster a command goes to the master that has its keys, as far as is known; a redirected command had no effect,
    and is sent to the other server.
    """

    def __init__(
        self, nodes: Nodes, limits: Limits, on_connect: Callable[[], Awaitable[Store]]
    ) -> None:
        self.nodes = nodes
        self.link = StoreLink(nodes, limits, on_connect)
        self.timings = {"write": LatencyBuffer(), "read": LatencyBuffer()}
        """Durations of whole flushes, from the first byte sent to the last answer."""
        self._routes: dict[str, _Route] = {}
        self._seed = self._route(nodes.seed)

    @property
    def errors(self) -> dict[str, int]:
        """Number of errors and unanswered flushes, by kind."""
        return self.link.errors

    @property
    def confirmations(self) -> LatencyBuffer:
        """Durations from the primary's reply to a write flush until enough replicas have it."""
        return self.link.confirmations

    def _route(self, url: str) -> _Route:
        route = self._routes.get(url)
        if route is None:
            pool, workers = self.nodes.pool(url), self.link.limits.write_workers
            written, read = self.timings["write"], self.timings["read"]
            if self.nodes.is_replicated:
                writes: Lane = ReplicatedWriteLane(
                    self.link, pool, workers, written, self._writes_at
                )
                reads = Lane(self.link, pool, 1, read, self._reads_at, worker=ReplicatedReader)
            else:
                writes = Lane(self.link, pool, workers, written, self._writes_at, writes=True)
                reads = Lane(self.link, pool, 1, read, self._reads_at)
            route = self._routes[url] = _Route(writes, reads, pool)
        return route

    def _writes_at(self, url: str) -> Lane:
        return self._route(url).writes

    def _reads_at(self, url: str) -> Lane:
        return self._route(url).reads

    def _route_of(self, key: bytes) -> _Route:
        return self._route(self.nodes.url_of(key)) if self.nodes.is_cluster else self._seed

    async def close(self) -> None:
        """Fail the waiting calls, and disconnect."""
        for route in list(self._routes.values()):
            await route.close()
        await self.nodes.close()

    async def write(self, name: str, keys: Sequence[bytes], *arguments: Argument) -> Reply:
        """Run a script that changes something."""
        command = command_of(script(name), keys, *arguments)
        return await self._route_of(keys[0]).writes.call(command)

    async def read(self, name: str, keys: Sequence[bytes], *arguments: Argument) -> Reply:
        """Run a script that changes nothing that must last, so that any store may answer it."""
        command = command_of(script(name), keys, *arguments)
        try:
            return await retry_store_changes(lambda: self._route_of(keys[0]).reads.call(command))
        except OutcomeUnknown:
            raise StorageUnavailable("The store timed out.") from None

    def gather(self, gatherer: Coalescer, part: Any, size_bytes: int) -> "asyncio.Future[Any]":
        """Queue `part`, of about that size, to be coalesced with parts of equal gatherers."""
        weight = PART_WEIGHT if size_bytes < PART_BYTES_SMALL else COMMAND_WEIGHT
        route = self._route_of(gatherer.key) if self.nodes.is_cluster else self._seed
        return route.writes.gather(gatherer, part, size_bytes, weight)

    async def gathered(self, gatherer: Coalescer, part: Any, size_bytes: int) -> Any:
        """Run a part that costs as much as a single call, and return its answer.

        The answer must not get lost on its way to its caller: see `Coalescer.abandoned`.
        """
        route = self._route_of(gatherer.key) if self.nodes.is_cluster else self._seed
        done = route.writes.gather(gatherer, part, size_bytes, COMMAND_WEIGHT)
        try:
            return await done
        except asyncio.CancelledError:
            answered = done.done() and not done.cancelled() and done.exception() is None
            if answered:  # cancelled between the answer and its reading
                gatherer.abandoned(part, done.result())
            raise
