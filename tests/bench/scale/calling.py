"""Calls whose answers are looked at, a few at a time over connections that stay."""

import json
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from tests.bench.wire import JSON, MSGPACK, HttpConnection, good

RAW = "application/octet-stream"
CONNECTIONS = 8


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    body: bytes = b""
    kind: str = JSON
    accept: str = JSON


class Caller:
    """Some connections to one port: as many calls are under way as there are connections."""

    def __init__(self, port: int, connections: int = CONNECTIONS) -> None:
        self._port = port
        self._connections = [HttpConnection(port) for _ in range(connections)]

    def __enter__(self) -> "Caller":
        return self

    def __exit__(self, *error: object) -> None:
        for connection in self._connections:
            connection.__exit__(*error)

    def _connected(self) -> None:
        """The server closes what has been idle for some seconds."""
        for nth, connection in enumerate(self._connections):
            if connection.has_news():
                connection.__exit__()
                self._connections[nth] = HttpConnection(self._port)

    def ask(self, asked: Iterable[Asked]) -> list[bytes]:
        """The bodies of the answers, in order. Raises Unmeasurable when one is not good."""
        self._connected()
        answers: list[bytes] = []
        waiting = iter(asked)
        while some := list(islice(waiting, len(self._connections))):
            for connection, one in zip(self._connections, some, strict=False):
                connection.send(*one)
            for connection, one in zip(self._connections, some, strict=False):
                answers.append(good(connection.read(), f"{one.method} {one.path}"))
        return answers

    def done(self, asked: Sequence[Asked]) -> int:
        """As ask; how many calls it were."""
        return len(self.ask(asked))


def put(path: str, spec: object) -> Asked:
    """Create something."""
    return Asked("PUT", path, json.dumps(spec).encode())


def get(path: str) -> Asked:
    """Read something."""
    return Asked("GET", path)


def post(path: str, asked: object) -> Asked:
    """A call in JSON."""
    return Asked("POST", path, json.dumps(asked).encode())


def send(path: str, body: bytes) -> Asked:
    """A message."""
    return Asked("POST", f"{path}/messages", body, RAW)


def send_batch(path: str, packed: bytes) -> Asked:
    """A packed batch of messages."""
    return Asked("POST", f"{path}/messages", packed, MSGPACK, MSGPACK)


def receive(path: str, messages: int = 1, lease_s: int = 30) -> Asked:
    """Receive up to so many."""
    return post(
        f"{path}/receive", {"messages_max": messages, "visibility_timeout_seconds": lease_s}
    )


def settle(path: str, handles: Iterable[str], **how: Any) -> Asked:
    """Settle deliveries: `action` and what it needs."""
    return post(
        f"{path}/settle", {"settlements": [{"receipt_handle": handle, **how} for handle in handles]}
    )


def handles_in(answer: bytes) -> list[str]:
    """The receipt handles of a receive."""
    return [message["receipt_handle"] for message in json.loads(answer)["messages"]]
