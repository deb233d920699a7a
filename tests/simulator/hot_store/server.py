"""One simulated server of the hot store.

A command and its fsync are one step: no reply shows what a crash can undo. A crash loses the commands that have not
arrived and the replies on their way; `fail_over` also returns the data to an earlier snapshot, as a replica does that
was behind when it was promoted.
"""

from collections.abc import Sequence
from random import Random
from typing import Any, Protocol

from redis.exceptions import NoScriptError, RedisError, ResponseError

from tests.simulator.clock import now_ms
from tests.simulator.hot_store.keyspace import CommandError, Keyspace, Reply
from tests.simulator.hot_store.scripts import interpreter

LATENCY_S = 0.002
NOT_RUN = 0.7
"""Share of the calls of a failing script that do not reach the server."""


class Client(Protocol):
    """The other end of a session."""

    def deliver(self, reply: Reply | RedisError) -> None:
        """Take a reply or a published message, which arrives later."""
        ...

    def break_(self) -> None:
        """Lose the connection."""
        ...


class SimulatedServer:
    """A server that is up or down. `chance` decides how long each message takes."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.latency_max_s = LATENCY_S
        self.replies_lost = 0.0
        """Share of the commands after which the connection breaks, before the reply is sent."""
        self.scripts_run = dict[bytes, None]()
        """SHA-1 of the scripts that were run, in the order of their first calls."""
        self.failing_script = b""
        """SHA-1 of the script at which connections break, before it is run or before the reply is sent."""
        self.keyspace = Keyspace(now_ms)
        self.up = True
        self.starts = 1
        self._lineage = 1  # of the data; another one after a loss
        self._loaded: set[bytes] = set()
        self.sessions: dict[Session, None] = {}
        """Those with a client, in the order of connecting."""

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
        for session in [*self.sessions]:
            session.end()

    def start(self) -> None:
        """Start it again with its own data."""
        self.up, self.starts = True, self.starts + 1

    def fail_over(self, snapshot: Any) -> None:
        """Replace it by a replica that has an earlier state of its data."""
        self.crash()
        self.keyspace.restore(snapshot)
        self._lineage += 1
        self.start()

    def run(self, command: Sequence[bytes], session: "Session") -> Reply:
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
                session.is_subscribed = True
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
        self.scripts_run[sha] = None
        keys, rest = arguments[2 : 2 + count], arguments[2 + count :]
        return interpreter().run(self.keyspace, sha, keys, rest)

    def publish(self) -> None:
        """Pass on what scripts have published."""
        published, self.keyspace.published = self.keyspace.published, []
        for channel, message in published:
            for session in [*self.sessions]:
                if session.is_subscribed:
                    session.client.deliver([b"message", channel, message])

    def _info(self) -> bytes:
        fields = {
            "run_id": f"{self.starts:040x}",
            "role": "master",
            "master_replid": f"{self._lineage:040x}",
            "master_replid2": f"{self._lineage - 1:040x}",
            "used_memory": 1,
            "maxmemory": 0,
            "cluster_enabled": 0,
        }
        return "".join(f"{name}:{value}\r\n" for name, value in fields.items()).encode()


class Session:
    """The server's side of a connection.

    Commands that were sent are run when they arrive, also if the client has closed the connection meanwhile. They are
    lost only by a crash of the server, and by `end`.
    """

    def __init__(self, server: SimulatedServer, client: Client) -> None:
        self.client = client
        self.is_subscribed = False
        self._server = server
        self._start = server.starts
        self._is_reachable = True
        self._queued: list[Sequence[bytes]] | None = None  # those between MULTI and EXEC
        server.sessions[self] = None

    @property
    def has_client(self) -> bool:
        return self in self._server.sessions

    def close(self) -> None:
        """Note that the client is gone: replies have no destination."""
        self._server.sessions.pop(self, None)

    def end(self) -> None:
        """Lose the connection in both directions, with the commands on their way."""
        self._is_reachable = False
        self.lose_client()

    def lose_client(self) -> None:
        """Lose the connection towards the client, with the replies on their way."""
        self.close()
        self.client.break_()

    def receive(self, commands: Sequence[Sequence[bytes]]) -> None:
        """Run commands that arrive."""
        server = self._server
        if not (self._is_reachable and server.up and server.starts == self._start):
            return
        for command in commands:
            fails = server.failing_script in command[1:2]
            if fails and server.chance.random() < NOT_RUN:
                self.end()
                break
            reply = self._answer(command)
            if fails and self.has_client:
                self.lose_client()
            if self.has_client:
                self.client.deliver(reply)
        server.publish()
        if self.has_client and server.chance.random() < server.replies_lost:
            self.lose_client()

    def _answer(self, command: Sequence[bytes]) -> Reply | RedisError:
        name = command[0].upper()
        if name == b"MULTI":
            self._queued = []
            return b"OK"
        if name == b"EXEC":
            queued, self._queued = self._queued or [], None
            return [self._run(item) for item in queued]
        if self._queued is not None:
            self._queued.append(command)
            return b"QUEUED"
        return self._run(command)

    def _run(self, command: Sequence[bytes]) -> Reply | RedisError:
        try:
            return self._server.run(command, self)
        except CommandError as error:
            text = str(error)
            return NoScriptError(text) if text.startswith("NOSCRIPT") else ResponseError(text)
