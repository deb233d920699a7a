"""Topology of the hot store: the servers that accept writes.

One server, or the masters of a cluster. Any server that answers is queried for the assignment of the 16 384 slots to
masters, and again whenever one refuses a command or does not answer. In between a MOVED reports one slot.

    key ──▶ slot ──▶ URL of its master; the seed's while nothing is known, and where there is no cluster
"""

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple, cast
from urllib.parse import quote, urlsplit, urlunsplit

from redis.asyncio import Redis
from redis.crc import key_slot
from redis.exceptions import RedisError, ResponseError

from storage.domain.errors import StorageUnavailable
from storage.redis.transport.client import ConnectionFactory, open_client, open_pool, unreachable

_REFRESH_INTERVAL_S = 0.2


class Master(NamedTuple):
    """A server that accepts writes, and its first slot: 0 for the only one."""

    url: str
    slot: int


class Nodes:
    """Assignment of slots to servers. One for a process; clients are created on demand."""

    is_replicated = False
    """True for a replica set (`storage.redis.transport.primary`)."""

    def __init__(self, url: str) -> None:
        self.seed = url
        self._clients: dict[str, Redis] = {}
        self._listening: dict[str, Redis] = {}
        self._is_alone = False
        self.is_cluster = False  # as far as is known: there are servers besides the seed
        self.replicas: dict[str, str] = {}
        """URL of each replica in a cluster, and of its master; the lost ones are not in it."""
        self._firsts: list[int] = []  # the first slot of each range, and the URL of its master
        self._owners: list[str] = []
        self._moved: dict[int, str] = {}  # reported by MOVED since
        self._refreshing: asyncio.Task[None] | None = None
        self._turn = 0

    async def close(self) -> None:
        """Disconnect."""
        if self._refreshing is not None:
            self._refreshing.cancel()
        for client in (*self._clients.values(), *self._listening.values()):
            await client.aclose()

    @property
    def acknowledging_replicas(self) -> int:
        """Return how many replicas must have a write before it is acknowledged."""
        return 0

    def pool(self, url: str) -> ConnectionFactory:
        """Open a pool of connections to one server, which the caller closes."""
        return cast(ConnectionFactory, open_pool(url))

    def client(self, url: str) -> Redis:
        """Return the client of one server."""
        if url not in self._clients:
            self._clients[url] = open_client(url)
        return self._clients[url]

    def next_listener(self) -> Redis:
        """Return a client that may listen without end, of another server each time.

        A published message reaches the subscribers of every server.
        """
        [url, *_] = self._in_turn()
        if url not in self._listening:
            self._listening[url] = open_client(url, waits=True)
        return self._listening[url]

    def url_of(self, key: bytes) -> str:
        """Return the URL of the server that has a key."""
        if not self.is_cluster:
            return self.seed
        slot = key_slot(key)
        moved = self._moved.get(slot)
        if moved is not None or not self._owners:
            return moved or self.seed
        return self._owners[max(0, bisect_right(self._firsts, slot) - 1)]

    def moved(self, slot: int, host: str, port: int) -> str:
        """Record a server's redirection of a slot; return the other server's URL.

        The rest of the topology is refreshed.
        """
        url = self._moved[slot] = url_at(self.seed, host, port)
        self.is_cluster, self._is_alone = True, False
        self.schedule_refresh()
        return url

    def at(self, host: str, port: int) -> str:
        """Return the URL of a server of the cluster."""
        return url_at(self.seed, host, port)

    def schedule_refresh(self) -> None:
        """Refresh the topology in the background, unless that is in progress."""
        if not self.is_cluster:
            return
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refresh())

    async def _refresh(self) -> None:
        with suppress(StorageUnavailable):  # the next refusal starts another query
            await self.masters()
        await asyncio.sleep(_REFRESH_INTERVAL_S)

    async def masters(self) -> Sequence[Master]:
        """Return the servers that accept writes now, by their first slots.

        Raises StorageUnavailable when none answers.
        """
        if self._is_alone:
            return [Master(self.seed, 0)]
        failed: RedisError | OSError = ConnectionError("no server was queried")
        for url in self._in_turn():
            try:
                ranges = await self._ranges(url)
            except (RedisError, OSError) as error:
                failed = error
                continue
            return self.note(ranges)
        raise unreachable(failed)

    def _in_turn(self) -> list[str]:
        """Return all known URLs, beginning with another one each time.

        A server that is cut off from the rest has outdated information.
        """
        urls = list(dict.fromkeys([self.seed, *self._owners]))
        self._turn += 1
        return [*urls[self._turn % len(urls) :], *urls[: self._turn % len(urls)]]

    async def _ranges(self, url: str) -> list[tuple[int, str]]:
        """Return (first slot, URL) of each range; nothing of a server that is not in a cluster."""
        try:
            client: Any = self.client(url)
            slots = await client.execute_command("CLUSTER SLOTS")
        except ResponseError:
            if self.is_cluster:
                raise
            self._is_alone = True  # or CLUSTER SLOTS is not permitted: then MOVED reports slots
            return []
        host = urlsplit(url).hostname or ""
        ranges = []
        self.replicas = {}
        for first, _, *servers in slots:
            master, *replicas = [
                url_at(self.seed, name or host, int(port)) for name, port, *_ in servers
            ]
            ranges.append((int(first), master))
            self.replicas |= dict.fromkeys(replicas, master)
        if not ranges:
            raise ConnectionError("the cluster has no slots yet")
        return sorted(ranges)

    def note(self, ranges: Sequence[tuple[int, str]]) -> Sequence[Master]:
        """Store (first slot, URL) of each range of a cluster, by slot; return the masters.

        `ranges` is empty for a single server.
        """
        masters: dict[str, Master] = {}
        for first, url in ranges:
            masters.setdefault(url, Master(url, first))
        self._moved = {}
        self.is_cluster = bool(masters.keys() - {self.seed})
        if not self.is_cluster:
            self._firsts, self._owners = [], []
            return [Master(self.seed, 0)]
        self._firsts = [first for first, _ in ranges]
        self._owners = [url for _, url in ranges]
        return [*masters.values()]


@lru_cache(64)
def hash_tag_for(slot: int) -> str:
    """Return a text that as a hash tag puts a key into this slot."""
    number = 0
    while key_slot(str(number).encode()) != slot:
        number += 1
    return str(number)


def key_of_master(key: str, master: Master, owner: str) -> str:
    """Return a master's own form of a key that each master has.

    The plain key at `owner`, the URL of the master that has it, and a key in the first slot at the others.
    """
    if owner == master.url:
        return key
    return key.replace("ms:", f"ms:{{{hash_tag_for(master.slot)}}}:", 1)


def url_at(seed: str, host: str, port: int) -> str:
    """Return the URL of another server, with the seed's options."""
    parts = urlsplit(seed)
    before, separator, _ = parts.netloc.rpartition("@")
    name = f"[{host}]" if ":" in host else quote(host)
    return urlunsplit(parts._replace(netloc=f"{before}{separator}{name}:{port}"))
