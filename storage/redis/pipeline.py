"""Every hot command goes through here: what arrives while a flush is under way leaves together in the next.

    callers ──▶ waiting calls ──▶ one write ──▶ one read of all answers ──▶ callers
                 ▲  while every hand is busy, calls gather

A lane is a list of waiting calls and the hands that take from it: a connection each, with one flush under
way at a time. Writes and reads have a lane each, so that a read does not wait behind an fsync. One hand is enough
while the disk is quick, and makes the largest flushes; when it is slow and calls pile up, a second one joins.

With `appendfsync always` a flush is a group commit: its writes go as one transaction, since a server otherwise waits for
the disk after every few kilobytes that it has read. A node of a cluster takes no transaction over several slots: there
they go as they are.

Calls that do the same to the same log can share one script call: see `Gatherer`.

    never sent, or refused by the server    StorageUnavailable, StorageFull: nothing happened
    sent, and no answer                     OutcomeUnknown: the caller may retry with the same key
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from hiredis import pack_command
from redis.asyncio import ConnectionPool
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import MovedError, NoScriptError, RedisError, ResponseError

from storage.domain.errors import OutcomeUnknown, StorageBusy, StorageUnavailable
from storage.domain.limits import (
    CALL_WEIGHT,
    FLUSH_BYTES_MAX,
    FLUSH_CALLS_MAX,
    FLUSH_WEIGHT_MAX,
    HAND_JOINS_AT,
    PART_BYTES_SMALL,
    PART_WEIGHT,
    SECOND_MS,
    Limits,
)
from storage.domain.tasks import end, give
from storage.domain.timings import Timings
from storage.redis.client import (
    Reply,
    kind_of,
    make_connection,
    open_pool,
    refused,
    unreachable,
)
from storage.redis.nodes import Nodes
from storage.redis.scripts import Script, script, script_names

logger = logging.getLogger(__name__)

_UNREACHABLE, _TIMEOUT, _LOST = "unreachable", "timeout", "connection_lost"
_MOVES = StorageUnavailable("The log is moving to another server of the store; try again.")

Argument = bytes | str | int
Store = int | None
Command = tuple[Argument, ...]
_BEGIN: Command = (b"MULTI",)
_COMMIT: Command = (b"EXEC",)
P = TypeVar("P")


class StoreChanged(StorageUnavailable):
    """The store is another one now, or has forgotten something; nothing happened. Who makes the call anew makes it for
    that store: engines do, so few callers hear of it."""


class Gatherer(Protocol):
    """How the parts of several callers become few commands, and their answers one for each part.

    Parts that are given to equal gatherers are gathered.
    """

    @property
    def key(self) -> bytes:
        """A key of the log."""
        ...

    def commands(self, parts: Sequence[Any]) -> list[tuple[Command, int]]:
        """Commands in order, each with the number of parts, from the first on, that it carries."""
        ...

    def answers(self, parts: Sequence[Any], reply: Reply) -> Sequence[Any]:
        """The answer for each part of one command; an exception among them is raised to its caller."""
        ...

    def abandoned(self, part: Any, answer: Any) -> None:
        """Take back what was answered to a caller that was cancelled after the command had left. One that was cancelled
        before that leaves nothing: its part is not sent."""
        ...


class _Call:
    """One command and the caller that waits for its answer."""

    __slots__ = ("command", "done", "store")
    weight = CALL_WEIGHT
    count = 1
    size_bytes = 0  # small, but for a few

    def __init__(self, command: Command, done: "asyncio.Future[Reply]", store: Store) -> None:
        self.command = command
        self.done = done
        self.store = store

    def commands(self) -> list[Command]:
        return [] if self.done.done() else [self.command]

    def settle(self, replies: Sequence[Reply]) -> None:
        for reply in replies:
            give(self.done, reply)


class _Redirected(_Call):
    """A command that another server of a cluster sent here. It is not sent any further."""

    __slots__ = ()


class _Gathering:
    """The parts that several callers want done to one log."""

    __slots__ = ("_counts", "_waiting", "gatherer", "parts", "size_bytes", "store", "weight")

    def __init__(self, gatherer: Gatherer, store: Store) -> None:
        self.gatherer = gatherer
        self.store = store
        self.parts: list[tuple[Any, asyncio.Future[Any]]] = []
        self.size_bytes = 0
        self.weight = 0

    @property
    def count(self) -> int:
        return len(self.parts)

    def commands(self) -> list[Command]:
        self._waiting = [(part, done) for part, done in self.parts if not done.done()]
        if not self._waiting:
            return []
        commands = self.gatherer.commands([part for part, _ in self._waiting])
        self._counts = [count for _, count in commands]
        return [command for command, _ in commands]

    def settle(self, replies: Sequence[Reply]) -> None:
        start = 0
        for count, reply in zip(self._counts, replies, strict=True):
            self._settle_some(self._waiting[start : start + count], reply)
            start += count

    def _settle_some(
        self, waiting: Sequence[tuple[Any, "asyncio.Future[Any]"]], reply: Reply
    ) -> None:
        if isinstance(reply, Exception):
            answers: Sequence[Any] = [reply] * len(waiting)
        else:
            answers = self.gatherer.answers([part for part, _ in waiting], reply)
        for (part, done), answer in zip(waiting, answers, strict=True):
            give(done, answer)
            if done.cancelled() and not isinstance(answer, Exception):
                self.gatherer.abandoned(part, answer)


class _Lane:
    """Calls that wait, and the hands that carry them to the store."""

    def __init__(
        self,
        pipeline: "Pipeline",
        hands: int,
        timings: Timings,
        pool: ConnectionPool,
        *,
        writes: bool = False,
    ) -> None:
        self.pipeline = pipeline
        self.writes = writes
        self.timings = timings
        self.pool = pool
        self._loop = asyncio.get_running_loop()
        self._waiting: list[_Call | _Gathering] = []
        self._gatherings: dict[Gatherer, _Gathering] = {}
        self._backlog = 0
        self._weight = 0
        self._idle: list[tuple[int, asyncio.Future[None]]] = []
        self._hands = [_Hand(self, 1 + nth * HAND_JOINS_AT) for nth in range(hands)]

    def call(self, command: Command) -> "asyncio.Future[Reply]":
        done = self._admit(CALL_WEIGHT)
        self._waiting.append(_Call(command, done, self.pipeline.store))
        return done

    def redirect(self, command: Command, store: Store) -> "asyncio.Future[Reply]":
        """Take a command over from another server's lane, with the store it was made for."""
        done = self._admit(CALL_WEIGHT)
        self._waiting.append(_Redirected(command, done, store))
        return done

    def gather(
        self, gatherer: Gatherer, part: Any, size_bytes: int, weight: int
    ) -> "asyncio.Future[Any]":
        done = self._admit(weight)
        gathering = self._gatherings.get(gatherer)
        if gathering is None:
            gathering = self._gatherings[gatherer] = _Gathering(gatherer, self.pipeline.store)
            self._waiting.append(gathering)
        gathering.parts.append((part, done))
        gathering.size_bytes += size_bytes
        gathering.weight += weight
        if gathering.size_bytes >= FLUSH_BYTES_MAX or gathering.weight >= FLUSH_WEIGHT_MAX:
            del self._gatherings[gatherer]  # full: the next part begins another
        return done

    def _admit(self, weight: int) -> "asyncio.Future[Any]":
        if self._backlog >= self.pipeline.limits.pipeline_backlog_max:
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

    async def next_calls(self, at_least: int) -> "list[_Call | _Gathering]":
        """What waits, as soon as it weighs that much; up to FLUSH_CALLS_MAX calls, and about FLUSH_BYTES_MAX or
        FLUSH_WEIGHT_MAX."""
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
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        for work in taken:
            self._let_go(work)
        self._wake_a_hand()
        return taken

    def _let_go(self, work: "_Call | _Gathering") -> None:
        self._backlog -= work.count
        self._weight -= work.weight
        if isinstance(work, _Gathering) and self._gatherings.get(work.gatherer) is work:
            del self._gatherings[work.gatherer]

    async def close(self) -> None:
        for hand in self._hands:
            await hand.close()
        _fail(self._waiting, StorageUnavailable("The service is stopping."))


class _Hand:
    """One connection, and the loop that takes what waits, sends it, and brings the answers back."""

    def __init__(self, lane: _Lane, at_least: int) -> None:
        self._lane = lane
        self._at_least = at_least
        self._pipeline = lane.pipeline
        self._connection: AbstractConnection | None = None
        self._commits = False  # whether writes go as one transaction
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        await end(self._task)
        await self._disconnect()

    async def _run(self) -> None:
        while True:
            taken = await self._lane.next_calls(self._at_least)
            try:
                await self._flush(taken)
            except Exception as error:
                # A fault of ours, not the store's: whoever called hears it, and the hand goes on.
                logger.exception("flush failed")
                await self._disconnect()
                _fail(taken, error)
            except asyncio.CancelledError:
                _fail(taken, OutcomeUnknown("The service is stopping."))
                raise

    async def _flush(self, taken: list[_Call | _Gathering]) -> None:
        """Send every command, read every answer, and hand each to its caller."""
        store = self._pipeline.store
        _fail([work for work in taken if _is_for_another(work.store, store)], StoreChanged())
        planned = [(work, commands) for work in taken if (commands := work.commands())]
        replies: list[Reply] = []
        for some in _slices([command for _, commands in planned for command in commands]):
            replies += await self._exchange(some, store)
        position = 0
        for work, commands in planned:
            own = replies[position : position + len(commands)]
            position += len(commands)
            if not self._pipeline.nodes.is_cluster or not any(map(_has_moved, own)):
                work.settle(own)
            elif isinstance(work, _Redirected):
                work.settle([_MOVES])  # it moves back and forth
            else:
                self._pipeline.go_on_elsewhere(self._lane, work, commands, own)

    async def _exchange(
        self, commands: list[Command], store: Store, may_repeat: bool = True
    ) -> list[Reply]:
        """Send commands that were made for a store, and read their answers."""
        try:
            connection = await self._connected()
        except (RedisError, OSError, TimeoutError) as error:
            self._pipeline.count_error(_UNREACHABLE)
            self._pipeline.nodes.look_soon()
            return [unreachable(error)] * len(commands)
        except StorageUnavailable as error:
            return [error] * len(commands)
        if _is_for_another(store, self._pipeline.store):
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
            async with asyncio.timeout(self._pipeline.limits.redis_reply_ms_max / SECOND_MS):
                if self._commits and len(commands) > 1:
                    return await self._commit(connection, commands)
                await connection.send_packed_command(_packed(commands), check_health=False)
                for _ in commands:
                    replies.append(await self._reply(connection))  # noqa: PERF401  kept if the next one fails
        except (RedisError, OSError, TimeoutError) as error:
            self._pipeline.count_error(_TIMEOUT if isinstance(error, TimeoutError) else _LOST)
            self._pipeline.nodes.look_soon()
            await self._disconnect()
            replies += [OutcomeUnknown()] * (len(commands) - len(replies))
        return replies

    async def _commit(self, connection: AbstractConnection, commands: list[Command]) -> list[Reply]:
        """All in one transaction, which waits for the disk once."""
        await connection.send_packed_command(
            _packed([_BEGIN, *commands, _COMMIT]), check_health=False
        )
        await self._reply(connection)
        queued = [await self._reply(connection) for _ in commands]
        done = await self._reply(connection)
        if isinstance(done, list):
            return [self._told(reply) for reply in done]
        return [one if isinstance(one, Exception) else done for one in queued]

    async def _reply(self, connection: AbstractConnection) -> Reply:
        try:
            return await connection.read_response(disable_decoding=True, disconnect_on_error=False)
        except ResponseError as error:
            return self._told(error)

    def _told(self, reply: Reply) -> Reply:
        if not isinstance(reply, ResponseError) or isinstance(reply, NoScriptError):
            return reply
        self._pipeline.count_error(kind_of(reply))
        if isinstance(reply, MovedError):
            self._pipeline.nodes.moved(reply.slot_id, reply.host, reply.port)
            return reply
        self._pipeline.nodes.look_soon()
        return refused(reply)

    async def _connected(self) -> AbstractConnection:
        if self._connection is not None and not await _is_dead(self._connection):
            return self._connection
        await self._disconnect()
        connection = make_connection(self._lane.pool)
        try:
            async with asyncio.timeout(self._pipeline.limits.redis_reply_ms_max / SECOND_MS):
                await connection.connect()  # type: ignore[no-untyped-call]
                await _load_scripts(connection)
                self._commits = self._lane.writes and not await _is_of_a_cluster(connection)
                self._pipeline.store = await self._pipeline.on_connect()
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        self._connection = connection
        return connection

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect(nowait=True)


class _Way(NamedTuple):
    """The lanes to one server."""

    writes: _Lane
    reads: _Lane
    pool: ConnectionPool

    async def close(self) -> None:
        await self.writes.close()
        await self.reads.close()
        await self.pool.aclose()


class Pipeline:
    """The hot store as the engines see it: a write lane and a read lane to each server.

    `on_connect` runs after a connection is made and before anything is sent on it; it decides whether the
    store is the one that was left (`storage.logs`), and names it. It raises StorageUnavailable when it cannot tell.
    What was made for a store of another name and waited is not sent: it may carry an epoch by which a store that has
    forgotten something would hand out an offset again.

    In a cluster a command goes to the master that has its keys, as far as is known; one that is sent on to another
    did nothing, and goes there.
    """

    def __init__(
        self, nodes: Nodes, limits: Limits, on_connect: Callable[[], Awaitable[Store]]
    ) -> None:
        self.limits = limits
        self.nodes = nodes
        self.on_connect = on_connect
        self.store: Store = None
        """The store behind the connections; None until there was one, which refuses what is made for none."""
        self.timings = {"write": Timings(), "read": Timings()}
        """Of whole flushes, from the first byte sent to the last answer."""
        self.errors: dict[str, int] = {}
        """Answers that were errors, and flushes that were not answered, by kind."""
        self._ways: dict[str, _Way] = {}
        self._seed = self._way(nodes.seed)
        self._elsewhere: set[asyncio.Task[None]] = set()

    def _way(self, url: str) -> _Way:
        way = self._ways.get(url)
        if way is None:
            pool, hands = open_pool(url), self.limits.write_hands
            writes = _Lane(self, hands, self.timings["write"], pool, writes=True)
            reads = _Lane(self, 1, self.timings["read"], pool)
            way = self._ways[url] = _Way(writes, reads, pool)
        return way

    def _way_of(self, key: bytes) -> _Way:
        return self._way(self.nodes.url_of(key)) if self.nodes.is_cluster else self._seed

    def _writes_for(self, gatherer: Gatherer) -> _Lane:
        return (self._way_of(gatherer.key) if self.nodes.is_cluster else self._seed).writes

    def count_error(self, kind: str) -> None:
        """One more of that kind."""
        self.errors[kind] = self.errors.get(kind, 0) + 1

    async def close(self) -> None:
        """Fail what still waits, and disconnect."""
        for way in list(self._ways.values()):
            await way.close()
        await end(*self._elsewhere)
        await self.nodes.close()

    async def write(self, name: str, keys: Sequence[bytes], *arguments: Argument) -> Reply:
        """Run a script that changes something."""
        command = command_of(script(name), keys, *arguments)
        return await self._way_of(keys[0]).writes.call(command)

    async def read(self, name: str, keys: Sequence[bytes], *arguments: Argument) -> Reply:
        """Run a script that changes nothing that must last, so it may be asked of whatever store is there."""
        command = command_of(script(name), keys, *arguments)
        try:
            try:
                return await self._way_of(keys[0]).reads.call(command)
            except StoreChanged:
                return await self._way_of(keys[0]).reads.call(command)
        except OutcomeUnknown:
            raise StorageUnavailable("The store did not answer in time.") from None

    def gather(self, gatherer: Gatherer, part: Any, size_bytes: int) -> "asyncio.Future[Any]":
        """Have `part`, of about that size, done together with what other callers want of the gatherer."""
        weight = PART_WEIGHT if size_bytes < PART_BYTES_SMALL else CALL_WEIGHT
        return self._writes_for(gatherer).gather(gatherer, part, size_bytes, weight)

    async def gathered(self, gatherer: Gatherer, part: Any, size_bytes: int) -> Any:
        """As `gather`, for what is as much work as a call of its own, and must not get lost between the answer and its
        caller: see Gatherer.abandoned."""
        done = self._writes_for(gatherer).gather(gatherer, part, size_bytes, CALL_WEIGHT)
        try:
            return await done
        except asyncio.CancelledError:
            answered = done.done() and not done.cancelled() and done.exception() is None
            if answered:  # cancelled between the answer and its reading
                gatherer.abandoned(part, done.result())
            raise

    def go_on_elsewhere(
        self,
        lane: _Lane,
        work: "_Call | _Gathering",
        commands: Sequence[Command],
        replies: Sequence[Reply],
    ) -> None:
        """Settle work some of whose commands were sent on, once those are answered. The hand does not wait for it."""
        task = asyncio.create_task(self._go_on(lane, work, commands, replies))
        self._elsewhere.add(task)
        task.add_done_callback(self._elsewhere.discard)

    async def _go_on(
        self,
        lane: _Lane,
        work: "_Call | _Gathering",
        commands: Sequence[Command],
        replies: Sequence[Reply],
    ) -> None:
        try:
            settled = await asyncio.gather(
                *map(partial(self._sent_on, lane, work.store), commands, replies)
            )
        except asyncio.CancelledError:
            _fail([work], OutcomeUnknown("The service is stopping."))
            raise
        work.settle(settled)

    async def _sent_on(self, lane: _Lane, store: Store, command: Command, reply: Reply) -> Reply:
        """The answer of the server that a command was sent on to; any other answer as it is."""
        if not isinstance(reply, MovedError):
            return reply
        way = self._way(self.nodes.at(reply.host, reply.port))
        target = way.writes if lane.writes else way.reads
        try:
            return await target.redirect(command, store)
        except Exception as error:  # the answer of this command alone; whoever called hears it
            return error


def _has_moved(reply: Reply) -> bool:
    return isinstance(reply, MovedError)


def command_of(known: Script, keys: Sequence[bytes], *arguments: Argument) -> Command:
    """The command that runs a script which the server has loaded."""
    return (b"EVALSHA", known.sha, len(keys), *keys, *arguments)


def runs_of(parts: Sequence[P], weight: Callable[[P], int], most: int) -> list[list[P]]:
    """The parts in order, in runs that weigh `most` together, but for a part that is heavier by itself."""
    runs: list[list[P]] = [[]]
    total = 0
    for part in parts:
        total += weight(part)
        if runs[-1] and total > most:
            runs.append([])
            total = weight(part)
        runs[-1].append(part)
    return runs


async def _is_dead(connection: AbstractConnection) -> bool:
    """Closed, or with something to read although nothing was asked: the end of the stream."""
    return not connection.is_connected or await connection.can_read()


def _is_for_another(made_for: Store, store: Store) -> bool:
    return made_for is not None and made_for != store


def _packed(commands: Sequence[Command]) -> bytes:
    return b"".join([pack_command(cast(Any, command)) for command in commands])


def _slices(commands: list[Command]) -> Iterator[list[Command]]:
    """The commands in order, in runs of FLUSH_BYTES_MAX at most."""
    some: list[Command] = []
    size = 0
    for command in commands:
        some.append(command)
        size += _size(command)
        if size >= FLUSH_BYTES_MAX:
            yield some
            some, size = [], 0
    if some:
        yield some


async def _load_scripts(connection: AbstractConnection) -> None:
    loads = [("SCRIPT", "LOAD", script(name).text) for name in script_names()]
    await connection.send_packed_command(connection.pack_commands(loads), check_health=False)
    for _ in loads:
        await connection.read_response()


async def _is_of_a_cluster(connection: AbstractConnection) -> bool:
    await connection.send_command("INFO", "cluster", check_health=False)
    told = await connection.read_response(disable_decoding=True)
    return b"cluster_enabled:1" in cast(bytes, told)


def _least_last(idle: "tuple[int, asyncio.Future[None]]") -> int:
    return -idle[0]


def _fail(works: Sequence[_Call | _Gathering], error: Exception) -> None:
    for work in works:
        futures = [work.done] if isinstance(work, _Call) else [done for _, done in work.parts]
        for done in futures:
            give(done, error)


def _size(command: Command) -> int:
    return sum(len(argument) for argument in command if isinstance(argument, bytes))
