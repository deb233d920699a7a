"""Connection lanes to one server of the hot store, and their flush workers.

    callers ──▶ flush queue ──▶ one write ──▶ one read of all replies ──▶ callers
                 ▲  while every worker is busy, calls accumulate

A lane is a queue of waiting calls and the workers that take flushes from it: each has one connection, and one flush in
progress at a time. One worker is enough while the disk is fast, and makes the largest flushes; when it is slow and
calls pile up, a second one joins.

With `appendfsync always` a flush is a group commit: its writes form one transaction, because a server otherwise waits
for the disk after every few kilobytes that it has read. A node of a cluster accepts no transaction over several slots:
there they are sent individually.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from operator import itemgetter
from time import perf_counter
from typing import Any, cast

from hiredis import pack_command
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import MovedError, NoScriptError, RedisError, ResponseError

from storage.concurrency.tasks import end
from storage.domain.errors import OutcomeUnknown, StorageUnavailable
from storage.domain.histogram import LatencyBuffer
from storage.domain.limits import (
    COPIED_BYTES_MAX,
    FLUSH_BYTES_MAX,
    SECOND_MS,
    SECOND_WORKER_WEIGHT,
    Limits,
)
from storage.hot_store.errors import StoreChanged
from storage.redis.scripts import script, script_names
from storage.redis.transport.client import (
    ConnectionFactory,
    Reply,
    kind_of,
    make_connection,
    refused,
    unreachable,
)
from storage.redis.transport.coalescing import Coalescer, Flush, FlushQueue, Redirected, Store, Work
from storage.redis.transport.command import Command
from storage.redis.transport.topology import Nodes

logger = logging.getLogger(__name__)

_UNREACHABLE, _TIMEOUT, _LOST = "unreachable", "timeout", "connection_lost"
_MOVES = StorageUnavailable("The log is moving to another server of the store; try again.")
BEGIN: Command = (b"MULTI",)
COMMIT: Command = (b"EXEC",)


class StoreLink:
    """State of the store shared by all lanes of a process."""

    def __init__(
        self, nodes: Nodes, limits: Limits, on_connect: Callable[[], Awaitable[Store]]
    ) -> None:
        self.nodes = nodes
        self.limits = limits
        self.on_connect = on_connect
        self.store: Store = None
        """The store behind the connections; None before the first one. Calls made for None are never refused."""
        self.errors: dict[str, int] = {}
        """Number of errors and unanswered flushes, by kind."""
        self.confirmations = LatencyBuffer()
        """Durations from the primary's reply to a write flush until enough replicas have it on disk."""

    def count_error(self, kind: str) -> None:
        """Count one more error of that kind."""
        self.errors[kind] = self.errors.get(kind, 0) + 1


class Lane:
    """Waiting calls, and the workers that send them to one server.

    `lane_at` returns the lane of this kind to another server of a cluster, by its URL. `worker` is the kind of its flush
    workers, those of one server or a cluster by default.
    """

    def __init__(
        self,
        link: StoreLink,
        pool: ConnectionFactory,
        workers: int,
        timings: LatencyBuffer,
        lane_at: "Callable[[str], Lane]",
        *,
        writes: bool = False,
        worker: "Callable[[Lane, int], FlushWorker] | None" = None,
    ) -> None:
        self.link = link
        self.pool = pool
        self.timings = timings
        self.writes = writes
        self._lane_at = lane_at
        self._queue = FlushQueue(link.limits.pipeline_backlog_max)
        self._loop = asyncio.get_running_loop()
        self._idle: list[tuple[int, asyncio.Future[None]]] = []
        self._redirects: set[asyncio.Task[None]] = set()
        start = worker or FlushWorker
        self._workers = [start(self, 1 + nth * SECOND_WORKER_WEIGHT) for nth in range(workers)]

    def call(self, command: Command) -> "asyncio.Future[Reply]":
        """Queue one command. Raises StorageBusy."""
        done = self._queue.call(command, self.link.store)
        self._wake_worker()
        return done

    def redirect(self, command: Command, store: Store) -> "asyncio.Future[Reply]":
        """Queue a command of another server's lane, with the store it was made for."""
        done = self._queue.redirect(command, store)
        self._wake_worker()
        return done

    def gather(
        self, gatherer: Coalescer, part: Any, size_bytes: int, weight: int
    ) -> "asyncio.Future[Any]":
        """Queue a part to be coalesced with those of equal gatherers. Raises StorageBusy."""
        done = self._queue.gather(gatherer, part, size_bytes, weight, self.link.store)
        if self._idle:
            self._wake_worker()
        return done

    def _wake_worker(self) -> None:
        if self._idle and self._queue.weight >= self._idle[-1][0]:
            _, idle = self._idle.pop()
            if not idle.done():
                idle.set_result(None)

    async def next_flush(self, at_least: int) -> Flush:
        """Wait until the waiting calls weigh `at_least`, and take a flush of them."""
        while self._queue.weight < at_least:
            idle = self._loop.create_future()
            self._idle.append((at_least, idle))
            self._idle.sort(key=itemgetter(0), reverse=True)  # the least demanding one last
            await idle
        flush = self._queue.take()
        self._wake_worker()
        return flush

    def follow_redirect(
        self, work: Work, commands: Sequence[Command], replies: Sequence[Reply]
    ) -> None:
        """Settle work some of whose commands were redirected, once those are answered.

        The worker does not wait for it.
        """
        task = asyncio.create_task(self._settle_redirected(work, commands, replies))
        self._redirects.add(task)
        task.add_done_callback(self._redirects.discard)

    async def _settle_redirected(
        self, work: Work, commands: Sequence[Command], replies: Sequence[Reply]
    ) -> None:
        try:
            settled = await asyncio.gather(
                *map(partial(self._forward, work.store), commands, replies)
            )
        except asyncio.CancelledError:
            work.fail(OutcomeUnknown("The service is stopping."))
            raise
        work.settle(settled)

    async def _forward(self, store: Store, command: Command, reply: Reply) -> Reply:
        """Follow a redirection: return the other server's answer; any other reply unchanged."""
        if not isinstance(reply, MovedError):
            return reply
        target = self._lane_at(self.link.nodes.at(reply.host, reply.port))
        try:
            return await target.redirect(command, store)
        except Exception as error:  # the answer to this command alone; it is raised to its caller
            return error

    async def close(self) -> None:
        """Fail the waiting calls, and disconnect."""
        for worker in self._workers:
            await worker.close()
        await end(*self._redirects)
        self._queue.fail(StorageUnavailable("The service is stopping."))


class FlushWorker:
    """One connection, and the loop that takes waiting calls, sends them and reads the answers."""

    def __init__(self, lane: Lane, at_least: int) -> None:
        self._lane = lane
        self._at_least = at_least
        self._link = lane.link
        self._connection: AbstractConnection | None = None
        self._commits = False  # whether writes go as one transaction
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stop, and disconnect; callers that wait for an answer get OutcomeUnknown."""
        await end(self._task)
        await self._disconnect()

    async def _run(self) -> None:
        while True:
            flush = await self._lane.next_flush(self._at_least)
            try:
                await self._flush(flush)
            except Exception as error:
                # A bug of ours, not a failure of the store: it is raised to the callers, and the worker continues.
                logger.exception("flush_failed")
                await self._disconnect()
                flush.fail(error)
            except asyncio.CancelledError:
                flush.fail(OutcomeUnknown("The service is stopping."))
                raise
            del flush  # an idle wait holds no data of callers

    async def _flush(self, flush: Flush) -> None:
        """Send every command, read every reply, and pass the replies on."""
        store = self._link.store
        replies: list[Reply] = []
        for run in _slices(flush.commands(store)):
            replies += await self._exchange(run, store)
        if not self._link.nodes.is_cluster:
            flush.settle(replies)
            return
        for work, commands, own in flush.answered(replies):
            if not any(map(_has_moved, own)):
                work.settle(own)
            elif isinstance(work, Redirected):
                work.settle([_MOVES])  # redirected back and forth
            else:
                self._lane.follow_redirect(work, commands, own)

    async def _exchange(
        self, commands: list[Command], store: Store, may_repeat: bool = True
    ) -> list[Reply]:
        """Send commands that were made for a store, and read their answers."""
        try:
            connection = await self._connected()
        except (RedisError, OSError, TimeoutError) as error:
            self._link.count_error(_UNREACHABLE)
            self._link.nodes.schedule_refresh()
            return [unreachable(error)] * len(commands)
        except StorageUnavailable as error:
            return [error] * len(commands)
        if store is not None and store != self._link.store:
            return [StoreChanged()] * len(commands)
        began = perf_counter()
        replies = await self._replies(connection, commands)
        self._lane.timings.observe(perf_counter() - began)
        unknown = [index for index, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        if unknown:
            # The server lost its scripts, and did nothing: a new connection loads them again.
            await self._disconnect()
            refusal: list[Reply] = [StorageUnavailable()] * len(unknown)
            again = [commands[index] for index in unknown]
            answers = await self._exchange(again, store, False) if may_repeat else refusal
            for index, reply in zip(unknown, answers, strict=True):
                replies[index] = reply
        return replies

    async def _replies(
        self, connection: AbstractConnection, commands: list[Command]
    ) -> list[Reply]:
        replies: list[Reply] = []
        try:
            async with asyncio.timeout(self._link.limits.redis_reply_ms_max / SECOND_MS):
                if self._commits and len(commands) > 1:
                    return await self._commit(connection, commands)
                await connection.send_packed_command(packed(commands), check_health=False)
                for _ in commands:
                    replies.append(await self._reply(connection))  # noqa: PERF401  needed if the next one fails
        except (RedisError, OSError, TimeoutError) as error:
            await self._lose(error)
            replies += [OutcomeUnknown()] * (len(commands) - len(replies))
        return replies

    async def _lose(self, error: Exception) -> None:
        """Count a flush that was not answered, and disconnect."""
        self._link.count_error(_TIMEOUT if isinstance(error, TimeoutError) else _LOST)
        self._link.nodes.schedule_refresh()
        await self._disconnect()

    async def _commit(self, connection: AbstractConnection, commands: list[Command]) -> list[Reply]:
        """Send all in one transaction, which waits for the disk once."""
        await connection.send_packed_command(packed([BEGIN, *commands, COMMIT]), check_health=False)
        await self._reply(connection)
        queued = [await self._reply(connection) for _ in commands]
        result = await self._reply(connection)
        if isinstance(result, list):
            return [self._translate_reply(reply) for reply in result]
        return [answer if isinstance(answer, Exception) else result for answer in queued]

    async def _reply(self, connection: AbstractConnection) -> Reply:
        try:
            return await connection.read_response(disable_decoding=True, disconnect_on_error=False)
        except ResponseError as error:
            return self._translate_reply(error)

    def _translate_reply(self, reply: Reply) -> Reply:
        if not isinstance(reply, ResponseError) or isinstance(reply, NoScriptError):
            return reply
        self._link.count_error(kind_of(reply))
        if isinstance(reply, MovedError):
            self._link.nodes.moved(reply.slot_id, reply.host, reply.port)
            return reply
        self._link.nodes.schedule_refresh()
        return refused(reply)

    async def _connected(self) -> AbstractConnection:
        if self._connection is not None and not await is_dead(self._connection):
            return self._connection
        await self._disconnect()
        connection = make_connection(self._lane.pool)
        try:
            async with asyncio.timeout(self._link.limits.redis_reply_ms_max / SECOND_MS):
                await connection.connect()  # type: ignore[no-untyped-call]
                await load_scripts(connection)
                self._commits = self._lane.writes and not await is_of_cluster(connection)
                self._link.store = await self._link.on_connect()
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        self._connection = connection
        return connection

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect(nowait=True)


def _has_moved(reply: Reply) -> bool:
    return isinstance(reply, MovedError)


async def is_dead(connection: AbstractConnection) -> bool:
    """Return whether the connection is closed, or has unrequested data: the end of the stream."""
    return not connection.is_connected or await connection.can_read()


async def load_scripts(connection: AbstractConnection) -> None:
    """Load all scripts into the connection's server."""
    loads = [("SCRIPT", "LOAD", script(name).text) for name in script_names()]
    await connection.send_packed_command(connection.pack_commands(loads), check_health=False)
    for _ in loads:
        await connection.read_response()


async def is_of_cluster(connection: AbstractConnection) -> bool:
    """Return whether the connection's server is a node of a cluster."""
    await connection.send_command("INFO", "cluster", check_health=False)
    info = await connection.read_response(disable_decoding=True)
    return b"cluster_enabled:1" in cast(bytes, info)


_pack: Callable[[Command], bytes] = cast(Any, pack_command)
"""Encoder of a command; the library states fewer types than it takes."""


def packed(commands: Sequence[Command]) -> list[bytes]:
    """Encode commands in pieces; large arguments are pieces of their own, and are not copied."""
    pieces: list[bytes] = []
    small: list[bytes] = []
    for command in commands:
        if _size(command) <= COPIED_BYTES_MAX:
            small.append(_pack(command))
            continue
        small.append(b"*%d\r\n" % len(command))
        for argument in command:
            encoded = argument if isinstance(argument, bytes) else str(argument).encode()
            small.append(b"$%d\r\n" % len(encoded))
            if len(encoded) > COPIED_BYTES_MAX:
                pieces += b"".join(small), encoded
                small = [b"\r\n"]
            else:
                small += encoded, b"\r\n"
    return [*pieces, b"".join(small)]


def _slices(commands: Sequence[Command]) -> list[list[Command]]:
    """Divide the commands, in order, into runs of FLUSH_BYTES_MAX at most."""
    runs: list[list[Command]] = []
    size = FLUSH_BYTES_MAX
    for command in commands:
        if size >= FLUSH_BYTES_MAX:
            runs.append([])
            size = 0
        runs[-1].append(command)
        size += _size(command)
    return runs


def _size(command: Command) -> int:
    return sum([len(argument) for argument in command if isinstance(argument, bytes)])
