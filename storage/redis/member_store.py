"""Members of a replica set over Redis connections; each call has a time-out, none retries.

    ms:store   hash, replicated: epoch, position, beacon
    ms:fence   the term that this store has promised itself to; not replicated, but replaced by a full resync

A promise is kept by one transaction, which WATCH makes conditional, also across a full resync. It follows port 1 of
this host, where nobody listens, rather than REPLICAOF NO ONE: so it keeps its replication id, and the others resync
partially. A replica takes the local write only with `replica-read-only no`. That is set and reset in one packet with
the transaction, which the server processes without interruption: no other client can write meanwhile.

The scripts are allowed to write above `maxmemory`, or a full store could not be fenced or promoted.
"""

import asyncio
import re
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from redis.asyncio import ConnectionPool
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ReadOnlyError, RedisError, ResponseError, WatchError

from storage.domain import limits
from storage.domain.replication.member_urls import (
    host_and_port,
    join_address,
    member_url,
    normalize_address,
)
from storage.domain.replication.replica_set import StorePosition
from storage.hot_store.members import MemberFacts, Promise, ReplicaLink, WriteOutcome
from storage.redis.keys import FENCE_KEY, STORE_KEY, VERSION_KEY
from storage.redis.transport.client import make_connection, open_pool

_NO_PRIMARY = ("127.0.0.1", "1")
_ALLOW_OOM = "#!lua flags=allow-oom\n"
_SET_PROMISE = _ALLOW_OOM + "return redis.call('set', KEYS[1], ARGV[1])"
_BEAT = _ALLOW_OOM + "return redis.call('hincrby', KEYS[1], 'beacon', 1)"
_SET_EPOCH = (
    _ALLOW_OOM
    + """if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('hset', KEYS[2], 'epoch', ARGV[1], 'min_insync', ARGV[2])
return 1"""
)
_SET_MIN_INSYNC = (
    _ALLOW_OOM
    + """if redis.call('hget', KEYS[1], 'epoch') ~= ARGV[1] then return 0 end
return redis.call('hset', KEYS[1], 'min_insync', ARGV[2])"""
)
_DROP_CLIENTS = ("CLIENT", "KILL", "TYPE", "normal")
_LINK = re.compile(r"^slave\d+:(.*)$", re.MULTILINE)

T = TypeVar("T")
_Command = tuple[Any, ...]


class RedisMembers:
    """The members behind a URL; implements `storage.hot_store.members.StoreMembers`."""

    def __init__(self, redis_url: str) -> None:
        self._url = redis_url
        self._pools: dict[str, ConnectionPool] = {}
        self._idle: dict[tuple[str, str], AbstractConnection] = {}

    async def close(self) -> None:
        """Disconnect."""
        idle, self._idle = list(self._idle.values()), {}
        for connection in idle:
            await _disconnect(connection)

    def normalize(self, address: str) -> str:
        return normalize_address(address)

    async def observe(self, addresses: Iterable[str]) -> Mapping[str, MemberFacts]:
        return await _of_each(addresses, self._facts)

    async def numeric_addresses(self, addresses: Iterable[str]) -> Mapping[str, str]:
        resolved = await _of_each(addresses, _resolve)
        return {numeric: address for address, all_ in resolved.items() for numeric in all_}

    async def promise(
        self, addresses: Iterable[str], term: int, *, again: bool = False
    ) -> Mapping[str, Promise]:
        return await _of_each(addresses, lambda address: self._promise(address, term, again))

    async def detach(self, addresses: Iterable[str], term: int) -> frozenset[str]:
        results = await _of_each(addresses, lambda address: self._detach(address, term))
        return frozenset(address for address, is_detached in results.items() if is_detached)

    async def attach(self, addresses: Iterable[str], primary: str, term: int) -> frozenset[str]:
        results = await _of_each(addresses, lambda address: self._attach(address, primary, term))
        return frozenset(address for address, is_attached in results.items() if is_attached)

    async def promote(self, address: str, term: int, min_insync: int) -> bool:
        results = await _of_each(
            [address], lambda address: self._promote(address, term, min_insync)
        )
        return results.get(address, False)

    async def store_min_insync(self, address: str, epoch: int, count: int) -> None:
        await _of_each([address], lambda address: self._store_min_insync(address, epoch, count))

    async def confirm(self, address: str, epoch: int, replicas: int, wait_ms: int) -> WriteOutcome:
        limit_ms = 2 * wait_ms + limits.CONFIRM_REPLY_MS
        results = await _of_each(
            [address], lambda address: self._confirm(address, epoch, replicas, wait_ms), limit_ms
        )
        return results.get(address, WriteOutcome.UNREACHABLE)

    async def _facts(self, address: str) -> MemberFacts:
        async with self._connection(address, "observe") as connection:
            replication, server, memory, stats, position, promise, own, keys, now = await _run(
                connection,
                ("INFO", "replication"),
                ("INFO", "server"),
                ("INFO", "memory"),
                ("INFO", "stats"),
                ("HMGET", STORE_KEY, "epoch", "position"),
                ("GET", FENCE_KEY),
                ("EXISTS", VERSION_KEY, STORE_KEY, FENCE_KEY),
                ("DBSIZE",),
                ("TIME",),
            )
        facts = _fields(replication) | _fields(server) | _fields(memory) | _fields(stats)
        is_primary = facts["role"] == "master"
        is_syncing = facts.get("master_sync_in_progress") == "1"
        last_io = "master_sync_last_io_seconds_ago" if is_syncing else "master_last_io_seconds_ago"
        silent_s = int(facts.get(last_io, -1))
        return MemberFacts(
            is_primary=is_primary,
            follows=None if is_primary else _followed(facts),
            is_linked=facts.get("master_link_status") == "up",
            is_syncing=is_syncing,
            silent_ms=silent_s * limits.SECOND_MS,
            promise=int(promise or 0),
            position=_position(position),
            has_data=_position(position).epoch > 0 or int(keys) > int(own),
            replicas=_links(replication.decode(), int(facts["master_repl_offset"])),
            version=facts.get("valkey_version", facts["redis_version"]),
            run_id=facts["run_id"],
            memory_used_bytes=int(facts["used_memory"]),
            memory_max_bytes=int(facts.get("maxmemory", 0)),
            full_resyncs=int(facts["sync_full"]),
            time_ms=_milliseconds(*now),
        )

    async def _promise(self, address: str, term: int, again: bool) -> Promise:
        async with self._connection(address) as connection:
            promise, before = await self._watch(connection)
            highest = max(promise, before.epoch)
            if again and promise == term >= before.epoch:
                return Promise(True, highest, before)
            if highest >= term + again:
                return Promise(False, highest, before)
            await self._fence(connection, address, term)
            position, replication = await _run(
                connection, ("HMGET", STORE_KEY, "epoch", "position"), ("INFO", "replication")
            )
            offset = int(_fields(replication)["master_repl_offset"])
            return Promise(True, highest, _position(position), offset)

    async def _detach(self, address: str, term: int) -> bool:
        async with self._connection(address) as connection:
            promise, before = await self._watch(connection)
            if max(promise, before.epoch) > term:
                return False
            await self._fence(connection, address, term)
            return True

    async def _fence(self, connection: AbstractConnection, address: str, term: int) -> None:
        """Set the promise, and follow nobody; conditional on what `_watch` has read."""
        *_, executed, _ = await _run(
            connection,
            ("CONFIG", "SET", "replica-read-only", "no"),
            ("MULTI",),
            ("EVAL", _SET_PROMISE, 1, FENCE_KEY, term),
            ("REPLICAOF", *_NO_PRIMARY),
            ("CONFIG", "SET", "replica-read-only", "yes"),
            _DROP_CLIENTS,
            ("EXEC",),
            ("CONFIG", "SET", "replica-read-only", "yes"),
        )
        _check_executed(executed)
        await self._drop_idle(address)

    async def _attach(self, address: str, primary: str, term: int) -> bool:
        async with self._connection(address) as connection:
            promise, _ = await self._watch(connection)
            if promise != term:
                return False
            [replication] = await _run(connection, ("INFO", "replication"))
            facts = _fields(replication)
            if facts["role"] != "master" and _followed(facts) == primary:
                return True
            host, port = host_and_port(primary)
            *_, executed = await _run(
                connection, ("MULTI",), ("REPLICAOF", host, port), _DROP_CLIENTS, ("EXEC",)
            )
            _check_executed(executed)
            await self._drop_idle(address)
            return True

    async def _promote(self, address: str, term: int, min_insync: int) -> bool:
        async with self._connection(address) as connection:
            promise, _ = await self._watch(connection)
            if promise != term:
                return False
            *_, executed = await _run(connection, ("MULTI",), ("REPLICAOF", "NO", "ONE"), ("EXEC",))
            _check_executed(executed)
            [is_set] = await _run(
                connection, ("EVAL", _SET_EPOCH, 2, FENCE_KEY, STORE_KEY, term, min_insync)
            )
            return bool(is_set)

    async def _store_min_insync(self, address: str, epoch: int, count: int) -> None:
        async with self._connection(address) as connection:
            await _run(connection, ("EVAL", _SET_MIN_INSYNC, 1, STORE_KEY, epoch, count))

    async def _confirm(self, address: str, epoch: int, replicas: int, wait_ms: int) -> WriteOutcome:
        async with self._connection(address, "confirm") as connection:
            try:
                _, received, on_disk, now = await _run(
                    connection,
                    ("EVAL", _BEAT, 1, STORE_KEY),
                    ("WAIT", replicas, wait_ms),
                    ("WAITAOF", 1, replicas, wait_ms),
                    ("HGET", STORE_KEY, "epoch"),
                )
            except ReadOnlyError:
                return WriteOutcome.NOT_PRIMARY
        if int(now or 0) != epoch:
            return WriteOutcome.NOT_PRIMARY
        if received < replicas or on_disk[0] < 1 or on_disk[1] < replicas:
            return WriteOutcome.UNCONFIRMED
        return WriteOutcome.CONFIRMED

    @staticmethod
    async def _watch(connection: AbstractConnection) -> tuple[int, StorePosition]:
        """Make the next transaction depend on the promise; return it, and the position."""
        _, promise, position = await _run(
            connection,
            ("WATCH", FENCE_KEY),
            ("GET", FENCE_KEY),
            ("HMGET", STORE_KEY, "epoch", "position"),
        )
        return int(promise or 0), _position(position)

    @asynccontextmanager
    async def _connection(
        self, address: str, purpose: str | None = None
    ) -> AsyncGenerator[AbstractConnection]:
        """Yield a connection; with a purpose, it is kept for the next use unless the block fails."""
        connection = None if purpose is None else self._idle.pop((address, purpose), None)
        connection = connection or self._new_connection(address)
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
            yield connection
        except BaseException:
            await _disconnect(connection)
            raise
        if purpose is None or (address, purpose) in self._idle:
            await _disconnect(connection)
        else:
            self._idle[address, purpose] = connection

    async def _drop_idle(self, address: str) -> None:
        """Disconnect what the member has dropped, so that the next use does not fail."""
        for key in [key for key in self._idle if key[0] == address]:
            await _disconnect(self._idle.pop(key))

    def _new_connection(self, address: str) -> AbstractConnection:
        if address not in self._pools:
            self._pools[address] = open_pool(member_url(self._url, address))
        return make_connection(self._pools[address])


async def _of_each(
    addresses: Iterable[str],
    work: Callable[[str], Awaitable[T]],
    limit_ms: int = limits.MEMBER_REPLY_MS_MAX,
) -> dict[str, T]:
    """Call `work` for all members at once; return the results of those that answered in time."""
    members = list(addresses)
    results = await asyncio.gather(*(_in_time(work, member, limit_ms) for member in members))
    return {
        member: result
        for member, result in zip(members, results, strict=True)
        if result is not None
    }


async def _in_time(work: Callable[[str], Awaitable[T]], member: str, limit_ms: int) -> T | None:
    try:
        async with asyncio.timeout(limit_ms / limits.SECOND_MS):
            return await work(member)
    except (RedisError, OSError, TimeoutError):
        return None


async def _run(connection: AbstractConnection, *commands: _Command) -> list[Any]:
    """Send commands in one packet; return their replies, or raise the first error among them."""
    await connection.send_packed_command(connection.pack_commands(commands))
    replies: list[Any] = []
    for _ in commands:
        try:
            replies.append(await connection.read_response())
        except ResponseError as error:
            replies.append(error)
    for reply in replies:
        if isinstance(reply, ResponseError):
            raise reply
    return replies


def _check_executed(replies: Sequence[Any] | None) -> None:
    """Raise RedisError unless a transaction took place and none of its commands failed."""
    if replies is None:
        raise WatchError("the promise changed")
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply


async def _disconnect(connection: AbstractConnection) -> None:
    with suppress(RedisError, OSError):
        await connection.disconnect(nowait=True)


async def _resolve(address: str) -> frozenset[str]:
    host, port = host_and_port(address)
    infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return frozenset(join_address(str(numeric[0]), port) for *_, numeric in infos)


def _fields(info: bytes) -> dict[str, str]:
    lines = info.decode().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def _milliseconds(seconds: bytes, microseconds: bytes) -> int:
    return int(seconds) * limits.SECOND_MS + int(microseconds) // 1_000


def _followed(facts: Mapping[str, str]) -> str | None:
    """Return the address of a replica's primary, or None for the one that nobody listens at."""
    host, port = facts["master_host"], facts["master_port"]
    return None if (host, port) == _NO_PRIMARY else join_address(host, int(port))


def _links(replication: str, offset: int) -> tuple[ReplicaLink, ...]:
    """Parse `slave0:ip=10.0.0.2,port=6379,state=online,offset=42,lag=0`.

    One without a port copies the data for a backup, and is never counted, as it acknowledges nothing.
    """
    links = []
    for line in _LINK.findall(replication):
        link = dict(field.split("=", 1) for field in line.strip().split(","))
        if link["port"] == "0":
            continue
        links.append(
            ReplicaLink(
                address=join_address(link["ip"], int(link["port"])),
                is_online=link["state"] == "online",
                lag_bytes=max(0, offset - int(link["offset"])),
                silent_ms=int(link["lag"]) * limits.SECOND_MS,
            )
        )
    return tuple(links)


def _position(fields: Sequence[bytes | None]) -> StorePosition:
    epoch, position = fields
    return StorePosition(int(epoch or 0), int(position or 0))
