"""The servers of the hot store that take writes: one, or the masters of a cluster.

Which master has which of the 16 384 slots is asked of any of them that answers, and again whenever one refuses a command
or does not answer. In between a MOVED tells of one slot.

    key ──▶ slot ──▶ URL of its master; the seed's while nothing is known, and where there is no cluster
"""

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

from redis.asyncio import Redis
from redis.crc import key_slot
from redis.exceptions import RedisError, ResponseError

from storage.domain.errors import StorageUnavailable
from storage.redis.transport.client import open_client, unreachable

_ASKED_AGAIN_S = 0.2


class Master(NamedTuple):
    """A server that takes writes, and the first slot that it has: 0 for the only one."""

    url: str
    slot: int


class Nodes:
    """Who has what. One for a process; clients are made when they are needed."""

    def __init__(self, url: str) -> None:
        self.seed = url
        self._clients: dict[str, Redis] = {}
        self._listening: dict[str, Redis] = {}
        self._is_alone = False
        self.is_cluster = False  # as far as is known: there is more than the seed
        self._firsts: list[int] = []  # the first slot of each range, and the URL of its master
        self._owners: list[str] = []
        self._moved: dict[int, str] = {}  # told by MOVED since
        self._looking: asyncio.Task[None] | None = None
        self._turn = 0

    async def close(self) -> None:
        """Disconnect."""
        if self._looking is not None:
            self._looking.cancel()
        for client in (*self._clients.values(), *self._listening.values()):
            await client.aclose()

    def client(self, url: str) -> Redis:
        """A client of one server."""
        if url not in self._clients:
            self._clients[url] = open_client(url)
        return self._clients[url]

    def next_listener(self) -> Redis:
        """A client that may listen without end, of another server each time: a publish is heard at any of them."""
        [url, *_] = self._in_turn()
        if url not in self._listening:
            self._listening[url] = open_client(url, waits=True)
        return self._listening[url]

    def url_of(self, key: bytes) -> str:
        """Where a key is."""
        if not self.is_cluster:
            return self.seed
        slot = key_slot(key)
        moved = self._moved.get(slot)
        if moved is not None or not self._owners:
            return moved or self.seed
        return self._owners[max(0, bisect_right(self._firsts, slot) - 1)]

    def moved(self, slot: int, host: str, port: int) -> str:
        """A server says that another has a slot: the URL of that one. The others are looked for."""
        url = self._moved[slot] = _at(self.seed, host, port)
        self.is_cluster, self._is_alone = True, False
        self.look_soon()
        return url

    def at(self, host: str, port: int) -> str:
        """The URL of a server of the cluster."""
        return _at(self.seed, host, port)

    def look_soon(self) -> None:
        """Ask who has what, unless it is being asked."""
        if not self.is_cluster:
            return
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_soon())

    async def _look_soon(self) -> None:
        with suppress(StorageUnavailable):  # it is asked again with the next refusal
            await self.masters()
        await asyncio.sleep(_ASKED_AGAIN_S)

    async def masters(self) -> Sequence[Master]:
        """Who takes writes now, by their first slots. Raises StorageUnavailable when nobody answers."""
        if self._is_alone:
            return [Master(self.seed, 0)]
        failed: RedisError | OSError = ConnectionError("nobody was asked")
        for url in self._in_turn():
            try:
                ranges = await self._ranges(url)
            except (RedisError, OSError) as error:
                failed = error
                continue
            return self.note(ranges)
        raise unreachable(failed)

    def _in_turn(self) -> list[str]:
        """All that are known, beginning with another one each time: one that is cut off from the rest knows old things."""
        known = list(dict.fromkeys([self.seed, *self._owners]))
        self._turn += 1
        return [*known[self._turn % len(known) :], *known[: self._turn % len(known)]]

    async def _ranges(self, url: str) -> list[tuple[int, str]]:
        """(first slot, URL) of each range; nothing of a server that is no cluster's."""
        try:
            client: Any = self.client(url)
            told = await client.execute_command("CLUSTER SLOTS")
        except ResponseError:
            if self.is_cluster:
                raise
            self._is_alone = True  # or it does not let us ask: then MOVED tells
            return []
        host = urlsplit(url).hostname or ""
        found = []
        for first, _, (name, port, *_), *_ in told:
            found.append((int(first), _at(self.seed, name or host, int(port))))
        if not found:
            raise ConnectionError("the cluster has no slots yet")
        return sorted(found)

    def note(self, ranges: Sequence[tuple[int, str]]) -> Sequence[Master]:
        """Keep (first slot, URL) of each range of a cluster, by slot; nothing of one server. Gives the masters."""
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
def word_in_slot(slot: int) -> str:
    """A word that as a hash tag puts a key into this slot."""
    number = 0
    while key_slot(str(number).encode()) != slot:
        number += 1
    return str(number)


def _at(seed: str, host: str, port: int) -> str:
    """The seed's URL, of another server."""
    parts = urlsplit(seed)
    before, at, _ = parts.netloc.rpartition("@")
    name = f"[{host}]" if ":" in host else quote(host)
    return urlunsplit(parts._replace(netloc=f"{before}{at}{name}:{port}"))
