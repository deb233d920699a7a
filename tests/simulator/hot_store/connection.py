"""Connections of redis-py to a simulated server, in virtual time.

client ──latency──▶ server: runs commands, then replies ──latency──▶ client
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import hiredis
from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError, RedisError

from storage.redis.transport.topology import Nodes
from tests.simulator.hot_store.keyspace import Reply
from tests.simulator.hot_store.server import Session, SimulatedServer


class SimulatedConnection(AbstractConnection):
    """A connection whose peer is a `SimulatedServer`."""

    def __init__(
        self, server: SimulatedServer, is_allowed: Callable[[], bool], **options: Any
    ) -> None:
        super().__init__(**options)
        self._server = server
        self._is_allowed = is_allowed
        self._session: Session | None = None
        self._replies: deque[tuple[float, Reply | RedisError]] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self._sent_until = self._answered_until = 0.0

    def repr_pieces(self) -> list[tuple[str, Any]]:
        return []

    def _host_error(self) -> str:
        return "simulated"

    @property
    def is_connected(self) -> bool:
        return self._session is not None

    async def connect(self) -> None:
        await asyncio.sleep(self._server.latency_s())
        if not (self._server.up and self._is_allowed()):
            raise ConnectionError("The simulated server is down, or the process was killed.")
        self._session = Session(self._server, self)

    async def _connect(self) -> None:
        """Do nothing: `connect` does all of it."""

    async def disconnect(self, *_: Any, **__: Any) -> None:
        self.break_()

    def break_(self) -> None:
        """Lose the connection, and the replies on their way; what was sent arrives."""
        session, self._session = self._session, None
        if session is not None:
            session.close()
        self._replies.clear()
        self._wake()

    async def can_read(self, *_: Any, **__: Any) -> bool:
        return not self.is_connected

    async def can_read_destructive(self) -> bool:
        return False

    async def check_health(self) -> None:
        return

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        if self._session is None:
            raise ConnectionError("The connection is closed.")
        loop = asyncio.get_running_loop()
        at = self._sent_until = max(self._sent_until, loop.time() + self._server.latency_s())
        loop.call_at(at, self._session.receive, _unpacked(command))

    def deliver(self, reply: Reply | RedisError) -> None:
        """Take a reply or a published message, which arrives later."""
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
        while self.is_connected and (not self._replies or self._replies[0][0] > loop.time()):
            self._waiting = loop.create_future()
            try:
                await self._waiting
            except asyncio.CancelledError:
                self.break_()  # as redis-py: the reply that is on its way would be the next command's
                raise
        if not self.is_connected:
            raise ConnectionError("The connection was lost.")
        reply = self._replies.popleft()[1]
        if isinstance(reply, Exception):
            raise reply
        return reply if disable_decoding or not self.encoder.decode_responses else _decoded(reply)


def _unpacked(command: Any) -> Sequence[Sequence[bytes]]:
    reader = hiredis.Reader()
    for piece in [command] if isinstance(command, bytes | str) else command:
        reader.feed(piece)
    commands = []
    while (words := reader.gets()) is not False:
        commands.append(words)
    return commands


def _decoded(reply: Reply) -> Any:
    if isinstance(reply, bytes):
        return reply.decode()
    return [_decoded(item) for item in reply] if isinstance(reply, list) else reply


class SimulatedNodes(Nodes):
    """The topology of one simulated server, for one process."""

    def __init__(self, server: SimulatedServer) -> None:
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
        connection = SimulatedConnection(self._server, lambda: not self._is_cut_off, **options)
        self._made.append(connection)
        return connection
