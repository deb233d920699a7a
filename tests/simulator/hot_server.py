"""One simulated server of the hot store, and connections to it in virtual time.

    client ──latency──▶ server: runs commands, then replies ──latency──▶ client

A command and its fsync are one step: no reply shows what a crash can undo. A crash loses the commands that have not
arrived and the replies on their way; `fail_over` also returns the data to an earlier snapshot, as a replica does that
was behind when it was promoted.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from random import Random
from typing import Any

import hiredis
from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError, NoScriptError, ResponseError

from storage.redis.transport.topology import Nodes
from tests.simulator.keyspace import CommandError, Keyspace, Reply
from tests.simulator.scripts import interpreter

START_MS = 1_700_000_000_000
LATENCY_S = 0.002


class HotServer:
    """A server that is up or down. `chance` decides how long each message takes."""

    def __init__(self, chance: Random) -> None:
        self._loop = asyncio.get_running_loop()
        self._began_s = self._loop.time()
        self.chance = chance
        self.clock_offset_ms = 0
        self.latency_max_s = LATENCY_S
        self.replies_lost = 0.0
        """Share of the commands after which the connection breaks, before the reply is sent."""
        self.keyspace = Keyspace(self.now_ms)
        self.up = True
        self._starts = 1
        self._lineage = 1  # of the data; another one after a loss
        self._loaded: set[bytes] = set()
        self.connections: dict[SimulatedConnection, None] = {}
        self.subscribers: dict[SimulatedConnection, None] = {}

    def now_ms(self) -> int:
        """Return the server's clock."""
        elapsed_s = self._loop.time() - self._began_s
        return START_MS + self.clock_offset_ms + int(elapsed_s * 1000)

    def latency_s(self) -> float:
        """Return how long the next message takes."""
        return self.chance.random() * self.latency_max_s

    def reset_latency(self) -> None:
        """Let messages take as long as usual."""
        self.latency_max_s = LATENCY_S

    def crash(self) -> None:
        """End the server: connections break, loaded scripts are forgotten."""
        self.up = False
        self._loaded.clear()
        self.subscribers.clear()
        for connection in [*self.connections]:
            connection.break_()

    def start(self) -> None:
        """Start it again with its own data."""
        self.up, self._starts = True, self._starts + 1

    def fail_over(self, snapshot: Any) -> None:
        """Replace it by a replica that has an earlier state of its data."""
        self.crash()
        self.keyspace.restore(snapshot)
        self._lineage += 1
        self.start()

    def run(self, command: Sequence[bytes], connection: "SimulatedConnection") -> Reply:
        """Run one command. Raises CommandError."""
        name, *arguments = command
        match name.upper():
            case b"EVALSHA":
                return self._evaluate(arguments)
            case b"SCRIPT":
                sha = interpreter().compile(arguments[1])
                self._loaded.add(sha)
                return sha
            case b"INFO":
                return self._info()
            case b"CONFIG":
                setting = {b"appendfsync": b"always", b"appendonly": b"yes"}.get(arguments[1])
                return [] if setting is None else [arguments[1], setting]
            case b"SUBSCRIBE":
                self.subscribers[connection] = None
                return [b"subscribe", arguments[0], 1]
            case b"CLUSTER":
                raise CommandError("ERR This instance has cluster support disabled")
            case b"CLIENT" | b"SELECT" | b"PING" | b"HELLO":
                return b"PONG" if name.upper() == b"PING" else b"OK"
            case _:
                return self.keyspace.run(name, arguments)

    def _evaluate(self, arguments: Sequence[bytes]) -> Reply:
        sha, count = arguments[0], int(arguments[1])
        if sha not in self._loaded:
            raise CommandError("NOSCRIPT No matching script. Please use EVAL.")
        keys, rest = arguments[2 : 2 + count], arguments[2 + count :]
        return interpreter().run(self.keyspace, sha, keys, rest)

    def publish(self) -> None:
        """Pass on what scripts have published."""
        published, self.keyspace.published = self.keyspace.published, []
        for channel, message in published:
            for subscriber in [*self.subscribers]:
                subscriber.deliver([b"message", channel, message])

    def _info(self) -> bytes:
        fields = {
            "run_id": f"{self._starts:040x}",
            "role": "master",
            "master_replid": f"{self._lineage:040x}",
            "master_replid2": f"{self._lineage - 1:040x}",
            "used_memory": 1,
            "maxmemory": 0,
            "cluster_enabled": 0,
        }
        return "".join(f"{name}:{value}\r\n" for name, value in fields.items()).encode()


class SimulatedConnection(AbstractConnection):
    """A connection of redis-py whose peer is a `HotServer`."""

    def __init__(self, server: HotServer, **options: Any) -> None:
        super().__init__(**options)
        self._server = server
        self._replies: deque[tuple[float, Reply | Exception]] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self._alive = False
        self._queued: list[Sequence[bytes]] | None = None  # those between MULTI and EXEC
        self._sent_until = self._answered_until = 0.0

    def repr_pieces(self) -> list[tuple[str, Any]]:
        return []

    def _host_error(self) -> str:
        return "simulated"

    @property
    def is_connected(self) -> bool:
        return self._alive

    async def connect(self) -> None:
        await asyncio.sleep(self._server.latency_s())
        if not self._server.up:
            raise ConnectionError("The simulated server is down.")
        self._alive = True
        self._server.connections[self] = None

    async def _connect(self) -> None:
        raise NotImplementedError

    async def disconnect(self, *_: Any, **__: Any) -> None:
        self.break_()

    def break_(self) -> None:
        """Lose the connection, and everything on its way."""
        self._alive = False
        self._server.connections.pop(self, None)
        self._server.subscribers.pop(self, None)
        self._replies.clear()
        self._queued = None
        self._wake()

    async def can_read(self, *_: Any, **__: Any) -> bool:
        return not self._alive

    async def can_read_destructive(self) -> bool:
        return False

    async def check_health(self) -> None:
        return

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        if not self._alive:
            raise ConnectionError("The connection is closed.")
        reader = hiredis.Reader()
        for piece in [command] if isinstance(command, bytes | str) else command:
            reader.feed(piece)
        loop = asyncio.get_running_loop()
        at = self._sent_until = max(self._sent_until, loop.time() + self._server.latency_s())
        commands = []
        while (one := reader.gets()) is not False:
            commands.append(one)
        loop.call_at(at, self._arrive, commands)

    def _arrive(self, commands: Sequence[Sequence[bytes]]) -> None:
        if not self._alive or not self._server.up:
            return
        for command in commands:
            self.deliver(self._answer(command))
        self._server.publish()
        if self._server.chance.random() < self._server.replies_lost:
            self.break_()

    def _answer(self, command: Sequence[bytes]) -> Reply | Exception:
        name = command[0].upper()
        if name == b"MULTI":
            self._queued = []
            return b"OK"
        if name == b"EXEC":
            queued, self._queued = self._queued or [], None
            return [self._run(one) for one in queued]
        if self._queued is not None:
            self._queued.append(command)
            return b"QUEUED"
        return self._run(command)

    def _run(self, command: Sequence[bytes]) -> Reply | Exception:
        try:
            return self._server.run(command, self)
        except CommandError as error:
            text = str(error)
            return NoScriptError(text) if text.startswith("NOSCRIPT") else ResponseError(text)

    def deliver(self, reply: Reply | Exception) -> None:
        """Send a reply or a published message to the client."""
        loop = asyncio.get_running_loop()
        at = self._answered_until = max(
            self._answered_until, loop.time() + self._server.latency_s()
        )
        self._replies.append((at, reply))
        loop.call_at(at, self._wake)

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def read_response(
        self,
        disable_decoding: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109  redis-py's interface
        **__: Any,
    ) -> Any:
        loop = asyncio.get_running_loop()
        while self._alive and (not self._replies or self._replies[0][0] > loop.time()):
            self._waiting = loop.create_future()
            await self._waiting
        if not self._alive:
            raise ConnectionError("The connection was lost.")
        reply = self._replies.popleft()[1]
        if isinstance(reply, Exception):
            raise reply
        return reply if disable_decoding or not self.encoder.decode_responses else _decoded(reply)


def _decoded(reply: Reply) -> Any:
    if isinstance(reply, bytes):
        return reply.decode()
    return [_decoded(item) for item in reply] if isinstance(reply, list) else reply


class SimulatedNodes(Nodes):
    """The topology of one simulated server, for one process."""

    def __init__(self, server: HotServer) -> None:
        super().__init__("redis://simulated")
        self._server = server
        self._is_alone = True
        self._is_cut_off = False
        self._made: list[SimulatedConnection] = []

    def cut_off(self) -> None:
        """Break the connections of this process, and allow no other."""
        self._is_cut_off = True
        for connection in self._made:
            connection.break_()

    def pool(self, url: str) -> ConnectionPool:
        return self._pool()

    def client(self, url: str) -> Redis:
        if url not in self._clients:
            self._clients[url] = Redis.from_pool(self._pool(decode_responses=True))
        return self._clients[url]

    def next_listener(self) -> Redis:
        return self.client("listener")

    def _pool(self, **options: Any) -> ConnectionPool:
        make: Any = self._make
        return ConnectionPool(connection_class=make, protocol=2, **options)

    def _make(self, **options: Any) -> SimulatedConnection:
        if self._is_cut_off:
            raise ConnectionError("The process was killed.")
        self._made = [one for one in self._made if one.is_connected]
        connection = SimulatedConnection(self._server, **options)
        self._made.append(connection)
        return connection
