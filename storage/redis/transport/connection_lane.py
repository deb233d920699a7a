"""Connection lanes to one server of the hot store, and their flush workers.

    callers ──▶ waiting calls ──▶ one write ──▶ one read of all answers ──▶ callers
                 ▲  while every worker is busy, calls accumulate

A lane is a list of waiting calls and the workers that take from it: each has one connection, and one flush in
progress at a time. One worker is enough while the disk is fast, and makes the largest flushes; when it is slow and
calls pile up, a second one joins.

With `appendfsync always` a flush is a group commit: its writes form one transaction, because a server otherwise waits
for the disk after every few kilobytes that it has read. A node of a cluster accepts no transaction over several slots:
there they are sent individually.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, cast

from redis.asyncio import ConnectionPool
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import MovedError, NoScriptError, RedisError, ResponseError

from storage.concurrency.tasks import end
from storage.domain.errors import OutcomeUnknown, StorageBusy, StorageUnavailable
from storage.domain.histogram import LatencyBuffer
from storage.domain.limits import (
    COMMAND_WEIGHT,
    FLUSH_BYTES_MAX,
    FLUSH_CALLS_MAX,
    FLUSH_WEIGHT_MAX,
    SECOND_MS,
    SECOND_WORKER_WEIGHT,
    Limits,
)
from storage.redis.scripts import script, script_names
from storage.redis.transport.client import Reply, kind_of, make_connection, refused, unreachable
from storage.redis.transport.coalescing import (
    CoalescedBatch,
    CoalescedCall,
    Coalescer,
    Redirected,
    Store,
    StoreChanged,
    Work,
    fail,
)
from storage.redis.transport.command import Command, packed, slices
from storage.redis.transport.topology import Nodes

logger = logging.getLogger(__name__)

_UNREACHABLE, _TIMEOUT, _LOST = "unreachable", "timeout", "connection_lost"
_MOVES = StorageUnavailable("The log is moving to another server of the store; try again.")
_BEGIN: Command = (b"MULTI",)
_COMMIT: Command = (b"EXEC",)


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

    def count_error(self, kind: str) -> None:
        """Count one more error of that kind."""
        self.errors[kind] = self.errors.get(kind, 0) + 1


class Lane:
    """Waiting calls, and the workers that send them to one server.

    `elsewhere` returns the lane of this kind to another server of a cluster, by its URL.
    """

    def __init__(
        self,
        link: StoreLink,
        pool: ConnectionPool,
        hands: int,
        timings: LatencyBuffer,
        elsewhere: "Callable[[str], Lane]",
        *,
        writes: bool = False,
    ) -> None:
        self.link = link
        self.pool = pool
        self.timings = timings
        self.writes = writes
        self._elsewhere = elsewhere
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Work] = []
        self._gatherings: dict[Hashable, CoalescedBatch] = {}
        self._backlog = 0
        self._weight = 0
        self._idle: list[tuple[int, asyncio.Future[None]]] = []
        self._sent_on: set[asyncio.Task[None]] = set()
        self._hands = [FlushWorker(self, 1 + nth * SECOND_WORKER_WEIGHT) for nth in range(hands)]

    def call(self, command: Command) -> "asyncio.Future[Reply]":
        """Queue one command. Raises StorageBusy."""
        done = self._admit(COMMAND_WEIGHT)
        self._waiting.append(CoalescedCall(command, done, self.link.store))
        return done

    def redirect(self, command: Command, store: Store) -> "asyncio.Future[Reply]":
        """Queue a command of another server's lane, with the store it was made for."""
        done = self._admit(COMMAND_WEIGHT)
        self._waiting.append(Redirected(command, done, store))
        return done

    def gather(
        self, gatherer: Coalescer, part: Any, size_bytes: int, weight: int
    ) -> "asyncio.Future[Any]":
        """Queue a part to be coalesced with those of equal gatherers. Raises StorageBusy."""
        done = self._admit(weight)
        gathering = self._gatherings.get(gatherer.alike)
        if gathering is None:
            gathering = self._gatherings[gatherer.alike] = CoalescedBatch(gatherer, self.link.store)
            self._waiting.append(gathering)
        gathering.parts.append((part, done))
        gathering.size_bytes += size_bytes
        gathering.weight += weight
        if gathering.size_bytes >= FLUSH_BYTES_MAX or gathering.weight >= FLUSH_WEIGHT_MAX:
            del self._gatherings[gatherer.alike]  # full: the next part starts another batch
        return done

    def _admit(self, weight: int) -> "asyncio.Future[Any]":
        if self._backlog >= self.link.limits.pipeline_backlog_max:
            raise StorageBusy
        self._backlog += 1
        self._weight += weight
        self._wake_a_hand()
        return self._loop.create_future()

    def _wake_a_hand(self) -> None:
        if self._idle and self._weight >= self._idle[-1][0]:
            _, idle = self._idle.pop()
            if not idle.done():
                idle.set_result(None)

    async def next_calls(self, at_least: int) -> list[Work]:
        """Wait until the waiting calls weigh `at_least`, and take them.

        Up to FLUSH_CALLS_MAX calls, and about FLUSH_BYTES_MAX or FLUSH_WEIGHT_MAX.
        """
        while self._weight < at_least:
            idle = self._loop.create_future()
            self._idle.append((at_least, idle))
            self._idle.sort(key=_least_last)
            await idle
        size_bytes = weight = count = 0
        for work in self._waiting[:FLUSH_CALLS_MAX]:
            if size_bytes >= FLUSH_BYTES_MAX or weight >= FLUSH_WEIGHT_MAX:
                break
            size_bytes += work.size_bytes
            weight += work.weight
            count += 1
        works, self._waiting = self._waiting[:count], self._waiting[count:]
        for work in works:
            self._let_go(work)
        self._wake_a_hand()
        return works

    def _let_go(self, work: Work) -> None:
        self._backlog -= work.count
        self._weight -= work.weight
        if isinstance(work, CoalescedBatch) and self._gatherings.get(work.gatherer.alike) is work:
            del self._gatherings[work.gatherer.alike]

    def go_on_elsewhere(
        self, work: Work, commands: Sequence[Command], replies: Sequence[Reply]
    ) -> None:
        """Settle work some of whose commands were redirected, once those are answered.

        The worker does not wait for it.
        """
        task = asyncio.create_task(self._go_on(work, commands, replies))
        self._sent_on.add(task)
        task.add_done_callback(self._sent_on.discard)

    async def _go_on(
        self, work: Work, commands: Sequence[Command], replies: Sequence[Reply]
    ) -> None:
        try:
            settled = await asyncio.gather(
                *map(partial(self._send_on, work.store), commands, replies)
            )
        except asyncio.CancelledError:
            fail([work], OutcomeUnknown("The service is stopping."))
            raise
        work.settle(settled)

    async def _send_on(self, store: Store, command: Command, reply: Reply) -> Reply:
        """Follow a redirection: return the other server's answer; any other reply unchanged."""
        if not isinstance(reply, MovedError):
            return reply
        target = self._elsewhere(self.link.nodes.at(reply.host, reply.port))
        try:
            return await target.redirect(command, store)
        except Exception as error:  # the answer to this command alone; it is raised to its caller
            return error

    async def close(self) -> None:
        """Fail the waiting calls, and disconnect."""
        for hand in self._hands:
            await hand.close()
        await end(*self._sent_on)
        fail(self._waiting, StorageUnavailable("The service is stopping."))


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
            works = await self._lane.next_calls(self._at_least)
            try:
                await self._flush(works)
            except Exception as error:
                # A bug of ours, not a failure of the store: it is raised to the callers, and the worker continues.
                logger.exception("flush_failed")
                await self._disconnect()
                fail(works, error)
            except asyncio.CancelledError:
                fail(works, OutcomeUnknown("The service is stopping."))
                raise

    async def _flush(self, works: list[Work]) -> None:
        """Send every command, read every answer, and pass each to its caller."""
        store = self._link.store
        fail([work for work in works if _is_for_another(work.store, store)], StoreChanged())
        planned = [(work, commands) for work in works if (commands := work.commands())]
        replies: list[Reply] = []
        for run in slices([command for _, commands in planned for command in commands]):
            replies += await self._exchange(run, store)
        position = 0
        for work, commands in planned:
            own = replies[position : position + len(commands)]
            position += len(commands)
            if not self._link.nodes.is_cluster or not any(map(_has_moved, own)):
                work.settle(own)
            elif isinstance(work, Redirected):
                work.settle([_MOVES])  # redirected back and forth
            else:
                self._lane.go_on_elsewhere(work, commands, own)

    async def _exchange(
        self, commands: list[Command], store: Store, may_repeat: bool = True
    ) -> list[Reply]:
        """Send commands that were made for a store, and read their answers."""
        try:
            connection = await self._connected()
        except (RedisError, OSError, TimeoutError) as error:
            self._link.count_error(_UNREACHABLE)
            self._link.nodes.look_soon()
            return [unreachable(error)] * len(commands)
        except StorageUnavailable as error:
            return [error] * len(commands)
        if _is_for_another(store, self._link.store):
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
            self._link.count_error(_TIMEOUT if isinstance(error, TimeoutError) else _LOST)
            self._link.nodes.look_soon()
            await self._disconnect()
            replies += [OutcomeUnknown()] * (len(commands) - len(replies))
        return replies

    async def _commit(self, connection: AbstractConnection, commands: list[Command]) -> list[Reply]:
        """Send all in one transaction, which waits for the disk once."""
        await connection.send_packed_command(
            packed([_BEGIN, *commands, _COMMIT]), check_health=False
        )
        await self._reply(connection)
        queued = [await self._reply(connection) for _ in commands]
        result = await self._reply(connection)
        if isinstance(result, list):
            return [self._told(reply) for reply in result]
        return [answer if isinstance(answer, Exception) else result for answer in queued]

    async def _reply(self, connection: AbstractConnection) -> Reply:
        try:
            return await connection.read_response(disable_decoding=True, disconnect_on_error=False)
        except ResponseError as error:
            return self._told(error)

    def _told(self, reply: Reply) -> Reply:
        if not isinstance(reply, ResponseError) or isinstance(reply, NoScriptError):
            return reply
        self._link.count_error(kind_of(reply))
        if isinstance(reply, MovedError):
            self._link.nodes.moved(reply.slot_id, reply.host, reply.port)
            return reply
        self._link.nodes.look_soon()
        return refused(reply)

    async def _connected(self) -> AbstractConnection:
        if self._connection is not None and not await _is_dead(self._connection):
            return self._connection
        await self._disconnect()
        connection = make_connection(self._lane.pool)
        try:
            async with asyncio.timeout(self._link.limits.redis_reply_ms_max / SECOND_MS):
                await connection.connect()  # type: ignore[no-untyped-call]
                await _load_scripts(connection)
                self._commits = self._lane.writes and not await _is_of_a_cluster(connection)
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


async def _is_dead(connection: AbstractConnection) -> bool:
    """Return whether the connection is closed, or has unrequested data: the end of the stream."""
    return not connection.is_connected or await connection.can_read()


def _is_for_another(made_for: Store, store: Store) -> bool:
    return made_for is not None and made_for != store


async def _load_scripts(connection: AbstractConnection) -> None:
    loads = [("SCRIPT", "LOAD", script(name).text) for name in script_names()]
    await connection.send_packed_command(connection.pack_commands(loads), check_health=False)
    for _ in loads:
        await connection.read_response()


async def _is_of_a_cluster(connection: AbstractConnection) -> bool:
    await connection.send_command("INFO", "cluster", check_health=False)
    info = await connection.read_response(disable_decoding=True)
    return b"cluster_enabled:1" in cast(bytes, info)


def _least_last(idle: "tuple[int, asyncio.Future[None]]") -> int:
    return -idle[0]
