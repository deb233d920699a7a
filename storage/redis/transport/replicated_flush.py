"""Flushes to the primary of a replica set.

    write   MULTI ▸ commands ▸ position + 1 ▸ EXEC ▸ WAIT k ▸ WAITAOF 1 k ▸ epoch    acknowledged: all of it holds
    read            commands ▸ PUBLISH to nobody   ▸ WAIT k ▸               epoch    shown: nothing that may be lost

k is `min_insync_replicas` - 1. WAIT fetches what the replicas have now; WAITAOF alone is answered a second later, since a
replica reports with the next data what it had on disk before it. WAITAOF counts what is in the file that a replica would
start from, which WAIT does not after a full resync. The epoch shows that the server is in the same life of the same
primary: after a demotion and a promotion, offsets of two histories are compared. A command that wrote nothing is answered
at once, hence the PUBLISH: it is replicated, and marks the connection's place behind all writes before it.

A new connection is used after a confirmed write (or a barrier) of its own. Until then calls are held back, so that a
change of the primary does not reach callers; once the store has not been ready for `hold_back_ms`, they get 503. A flush
that the server refused as a whole, because it is a replica by now, is sent again to the new primary.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, cast

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

from storage.domain.errors import NotEnoughReplicas, OutcomeUnknown, StorageUnavailable
from storage.domain.histogram import LatencyBuffer
from storage.domain.limits import (
    HOLD_BACK_RETRY_MS,
    REPAIR_ATTEMPTS_MAX,
    REPLICAS_CONNECT_MS_MAX,
    SECOND_MS,
)
from storage.domain.replication.acknowledgement import is_acknowledged_by_primary
from storage.redis.keys import STORE_KEY
from storage.redis.scripts import script
from storage.redis.transport.client import ConnectionFactory, Reply, make_connection
from storage.redis.transport.coalescing import Coalescer, Store
from storage.redis.transport.command import Command, command_of
from storage.redis.transport.connection_lane import (
    BEGIN,
    COMMIT,
    FlushWorker,
    Lane,
    StoreLink,
    is_dead,
    is_of_cluster,
    load_scripts,
    packed,
)
from storage.redis.transport.primary import ReplicaSetNodes

_STORE = STORE_KEY.encode()
_ADVANCE = command_of(script("advance_position"), [_STORE])
_EPOCH: Command = (b"HGET", _STORE, b"epoch")
_MARK: Command = (b"PUBLISH", b"ms:nobody", b"")
_UNCONFIRMED = "unconfirmed"
_CLUSTER = "A member is a node of a cluster; durability=replicated needs single stores."


class PrimaryMoved(StorageUnavailable):
    """The server is not the primary any more; nothing happened."""


class _ReplicatedWorker(FlushWorker, ABC):
    """Flush worker that uses a primary while enough replicas have its writes."""

    _used: tuple[int, str] | None = None
    """Generation and primary of the present connection."""
    _epoch: Store = None
    _unready_since: float | None = None

    @property
    def _nodes(self) -> ReplicaSetNodes:
        return cast(ReplicaSetNodes, self._link.nodes)

    @abstractmethod
    async def _is_confirmed(self, connection: AbstractConnection) -> bool:
        """Return whether enough replicas have everything written to a new connection's server."""

    async def _send(
        self, connection: AbstractConnection, commands: Sequence[Command]
    ) -> list[Reply]:
        await connection.send_packed_command(packed(commands), check_health=False)
        return await self._read(connection, len(commands))

    async def _read(self, connection: AbstractConnection, count: int) -> list[Reply]:
        return [await self._reply(connection) for _ in range(count)]

    async def _connected(self) -> AbstractConnection:
        """Return a connection to a ready primary; hold the flush back until there is one."""
        while True:
            try:
                return await self._ready()
            except (RedisError, OSError, TimeoutError, StorageUnavailable):
                if not self._may_hold_back():
                    raise
                await asyncio.sleep(HOLD_BACK_RETRY_MS / SECOND_MS)

    def _note_unready(self, since: float) -> None:
        """Note since when the store is not ready; a flush that was not confirmed was sent then."""
        if self._unready_since is None:
            self._unready_since = since

    def _may_hold_back(self) -> bool:
        now = _now()
        self._note_unready(now)
        assert self._unready_since is not None
        return now - self._unready_since < self._link.limits.hold_back_ms / SECOND_MS

    async def _ready(self) -> AbstractConnection:
        connection = self._connection
        present = (self._nodes.generation, self._nodes.seed)
        if connection is None or self._used != present or await is_dead(connection):
            connection = await self._reconnected()
        self._unready_since = None
        return connection

    async def _reconnected(self) -> AbstractConnection:
        await self._disconnect()
        generation = self._nodes.generation
        async with asyncio.timeout(self._link.limits.redis_reply_ms_max / SECOND_MS):
            self._epoch = await self._link.on_connect()
            self._used = generation, self._nodes.seed
            connection = make_connection(self._lane.pool)
            try:
                await self._prepare(connection)
            except BaseException:
                await connection.disconnect(nowait=True)
                raise
        self._link.store, self._connection = self._epoch, connection
        return connection

    async def _prepare(self, connection: AbstractConnection) -> None:
        await connection.connect()  # type: ignore[no-untyped-call]
        if await is_of_cluster(connection):
            raise StorageUnavailable(_CLUSTER)
        await load_scripts(connection)
        if not await self._is_confirmed(connection):
            raise NotEnoughReplicas

    async def _exchange(
        self, commands: list[Command], store: Store, may_repeat: bool = True
    ) -> list[Reply]:
        for _ in range(REPAIR_ATTEMPTS_MAX):
            replies = await super()._exchange(commands, store, may_repeat)
            if not replies or not isinstance(replies[0], PrimaryMoved):
                break
        return replies

    def _holds(self, tail: Sequence[Reply]) -> bool:
        """Return whether the replies behind a flush say that enough replicas have it."""
        *counts, epoch = tail
        replicas = self._nodes.acknowledging_replicas
        is_same_epoch = epoch == str(self._epoch).encode()
        return is_same_epoch and all(_reaches(count, replicas) for count in counts)


class ReplicatedWriter(_ReplicatedWorker):
    """Flush worker whose writes are answered once enough replicas have them on disk."""

    _tail = 3
    """Number of replies behind the one to EXEC."""

    async def _is_confirmed(self, connection: AbstractConnection) -> bool:
        replies = await self._send(connection, self._transaction([], REPLICAS_CONNECT_MS_MAX))
        return self._holds(replies[-self._tail :])

    async def _replies(
        self, connection: AbstractConnection, commands: list[Command]
    ) -> list[Reply]:
        transaction = self._transaction(commands, self._link.limits.replicas_confirm_ms_max)
        sent_at = _now()
        try:
            async with asyncio.timeout(self._link.limits.redis_reply_ms_max / SECOND_MS):
                await connection.send_packed_command(packed(transaction), check_health=False)
                *_, committed = await self._read(connection, len(transaction) - self._tail)
                committed_at = perf_counter()
                tail = await self._read(connection, self._tail)
        except (RedisError, OSError, TimeoutError) as error:
            await self._lose(error)
            return [OutcomeUnknown()] * len(commands)
        if not isinstance(committed, list):
            await self._disconnect()
            return [PrimaryMoved()] * len(commands)
        if not self._holds(tail):
            self._note_unready(sent_at)
            self._link.count_error(_UNCONFIRMED)
            await self._disconnect()
            return [OutcomeUnknown()] * len(commands)
        self._note_confirmed(perf_counter() - committed_at)
        return [self._translate_reply(reply) for reply in committed[:-1]]

    def _note_confirmed(self, seconds: float) -> None:
        self._link.confirmations.observe(seconds)

    def _transaction(self, commands: Sequence[Command], wait_ms: int) -> list[Command]:
        return [BEGIN, *commands, _ADVANCE, COMMIT, *self._waits(wait_ms), _EPOCH]

    def _waits(self, wait_ms: int) -> list[Command]:
        replicas = self._nodes.acknowledging_replicas
        return [(b"WAIT", replicas, wait_ms), (b"WAITAOF", 1, replicas, wait_ms)]


class PrimaryWriter(ReplicatedWriter):
    """Flush worker whose writes are answered once the primary has them on disk."""

    _tail = 1

    def _note_confirmed(self, seconds: float) -> None:
        """Observe nothing: no replica was waited for."""

    def _waits(self, wait_ms: int) -> list[Command]:
        return []


class ReplicatedReader(_ReplicatedWorker):
    """Flush worker whose reads are answered once enough replicas have what was read."""

    async def _is_confirmed(self, connection: AbstractConnection) -> bool:
        replies = await self._send(connection, self._barrier([], REPLICAS_CONNECT_MS_MAX))
        return self._holds(replies[-2:])

    async def _replies(
        self, connection: AbstractConnection, commands: list[Command]
    ) -> list[Reply]:
        sent_at = _now()
        try:
            async with asyncio.timeout(self._link.limits.redis_reply_ms_max / SECOND_MS):
                replies = await self._send(
                    connection, self._barrier(commands, self._link.limits.replicas_confirm_ms_max)
                )
        except (RedisError, OSError, TimeoutError) as error:
            await self._lose(error)
            return [OutcomeUnknown()] * len(commands)
        if self._holds(replies[-2:]):
            return replies[: len(commands)]
        self._note_unready(sent_at)
        self._link.count_error(_UNCONFIRMED)
        await self._disconnect()
        return [PrimaryMoved()] * len(commands)

    def _barrier(self, commands: Sequence[Command], wait_ms: int) -> list[Command]:
        return [*commands, _MARK, (b"WAIT", self._nodes.acknowledging_replicas, wait_ms), _EPOCH]


class ReplicatedWriteLane(Lane):
    """Write lane of a replica set, with a lane for calls that the primary acknowledges alone."""

    def __init__(
        self,
        link: StoreLink,
        pool: ConnectionFactory,
        workers: int,
        timings: LatencyBuffer,
        lane_at: Callable[[str], Lane],
    ) -> None:
        super().__init__(link, pool, workers, timings, lane_at, worker=ReplicatedWriter)
        self._by_primary = Lane(link, pool, 1, timings, lane_at, worker=PrimaryWriter)

    def call(self, command: Command) -> "asyncio.Future[Reply]":
        if is_acknowledged_by_primary():
            return self._by_primary.call(command)
        return super().call(command)

    def gather(
        self, gatherer: Coalescer, part: Any, size_bytes: int, weight: int
    ) -> "asyncio.Future[Any]":
        if is_acknowledged_by_primary():
            return self._by_primary.gather(gatherer, part, size_bytes, weight)
        return super().gather(gatherer, part, size_bytes, weight)

    async def close(self) -> None:
        await super().close()
        await self._by_primary.close()


def _reaches(count: Reply, replicas: int) -> bool:
    """Return whether a reply to WAIT, or to WAITAOF (ours, then the replicas'), is enough."""
    match count:
        case [int(own), int(others)]:
            return own >= 1 and others >= replicas
        case int(others):
            return others >= replicas
        case _:
            return False


def _now() -> float:
    return asyncio.get_running_loop().time()
