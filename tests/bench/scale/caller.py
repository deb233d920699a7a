"""Concurrent calls over persistent connections, with checked responses."""

import json
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from tests.bench.wire import JSON, MSGPACK, HttpConnection, good

RAW = "application/octet-stream"
CONNECTIONS = 8


class CallRequest(NamedTuple):
    """A request."""

    method: str
    path: str
    body: bytes = b""
    kind: str = JSON
    accept: str = JSON


class Caller:
    """Connections to one port; there are as many concurrent calls as connections."""

    def __init__(self, port: int, connections: int = CONNECTIONS) -> None:
        self._port = port
        self._connections = [HttpConnection(port) for _ in range(connections)]

    def __enter__(self) -> "Caller":
        return self

    def __exit__(self, *error: object) -> None:
        for connection in self._connections:
            connection.__exit__(*error)

    def _connected(self) -> None:
        """Reconnect: the server closes connections that were idle for some seconds."""
        for nth, connection in enumerate(self._connections):
            if connection.has_news():
                connection.__exit__()
                self._connections[nth] = HttpConnection(self._port)

    def request(self, asked: Iterable[CallRequest]) -> list[bytes]:
        """Return response bodies in order; raises Unmeasurable if a call fails."""
        self._connected()
        answers: list[bytes] = []
        waiting = iter(asked)
        while some := list(islice(waiting, len(self._connections))):
            for connection, one in zip(self._connections, some, strict=False):
                connection.send(*one)
            for connection, one in zip(self._connections, some, strict=False):
                answers.append(good(connection.read(), f"{one.method} {one.path}"))
        return answers

    def done(self, asked: Sequence[CallRequest]) -> int:
        """Make the calls as `ask` does, and return their number."""
        return len(self.request(asked))


def put(path: str, spec: object) -> CallRequest:
    """A call that creates something."""
    return CallRequest("PUT", path, json.dumps(spec).encode())


def get(path: str) -> CallRequest:
    """A call that reads something."""
    return CallRequest("GET", path)


def post(path: str, asked: object) -> CallRequest:
    """A call in JSON."""
    return CallRequest("POST", path, json.dumps(asked).encode())


def send(path: str, body: bytes) -> CallRequest:
    """A message."""
    return CallRequest("POST", f"{path}/messages", body, RAW)


def send_batch(path: str, packed: bytes) -> CallRequest:
    """A packed batch of messages."""
    return CallRequest("POST", f"{path}/messages", packed, MSGPACK, MSGPACK)


def receive(path: str, messages: int = 1, lease_s: int = 30) -> CallRequest:
    """Receive up to this many."""
    return post(
        f"{path}/receive", {"messages_max": messages, "visibility_timeout_seconds": lease_s}
    )


def settle(path: str, handles: Iterable[str], **how: Any) -> CallRequest:
    """Settle deliveries: `action` and its arguments."""
    return post(
        f"{path}/settle", {"settlements": [{"receipt_handle": handle, **how} for handle in handles]}
    )


def handles_in(answer: bytes) -> list[str]:
    """The receipt handles of a receive."""
    return [message["receipt_handle"] for message in json.loads(answer)["messages"]]
