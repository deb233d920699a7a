"""A minimal client for benchmarks: blocking sockets, to add little to measured times."""

import json
import select
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.ratios import Unmeasurable

JSON = "application/json"
MSGPACK = "application/msgpack"
REPLY_S_MAX = 60.0  # a longer call ends the row
FILLING_CONNECTIONS = 8


class Answer(NamedTuple):
    """A status and a body."""

    status: int
    body: bytes


class HttpConnection:
    """A keep-alive connection; `send` and `read` are separate, so that a call can wait."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=REPLY_S_MAX)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._unread = b""

    def __enter__(self) -> "HttpConnection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it."""
        self._socket.close()

    def fileno(self) -> int:
        """The descriptor, for select."""
        return self._socket.fileno()

    def send(
        self, method: str, path: str, body: bytes = b"", kind: str = JSON, accept: str = JSON
    ) -> None:
        """Write a request."""
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\n"
            f"Accept: {accept}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._socket.sendall(head.encode() + body)

    def read(self) -> Answer:
        """Read a response; raises Unmeasurable if the server is gone or silent."""
        while (end := self._unread.find(b"\r\n\r\n")) < 0:
            self._unread += self._some()
        head = self._unread[:end].lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        whole = end + 4 + length
        while len(self._unread) < whole:
            self._unread += self._some()
        body, self._unread = self._unread[end + 4 : whole], self._unread[whole:]
        return Answer(int(head.split(b" ", 2)[1]), body)

    def has_news(self) -> bool:
        """Return whether there is something to read, or the connection is closed."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def _some(self) -> bytes:
        try:
            data = self._socket.recv(1 << 20)
        except TimeoutError:
            raise Unmeasurable(f"no answer within {REPLY_S_MAX:.0f} s") from None
        if not data:
            raise Unmeasurable("the server closed the connection")
        return data

    def call(
        self, method: str, path: str, body: bytes = b"", kind: str = JSON, accept: str = JSON
    ) -> bytes:
        """Return the body of a successful response; raises Unmeasurable otherwise."""
        self.send(method, path, body, kind, accept)
        return good(self.read(), f"{method} {path}")


def good(answer: Answer, asked: str) -> bytes:
    """Return the body of a successful response; raises Unmeasurable otherwise."""
    if answer.status >= 300:
        text = answer.body[:200].decode(errors="replace")
        raise Unmeasurable(f"{asked} was answered {answer.status}: {text}")
    return answer.body


def call(port: int, method: str, path: str, asked: object = None) -> Any:
    """Make one JSON call on its own connection."""
    with HttpConnection(port) as connection:
        body = b"" if asked is None else json.dumps(asked).encode()
        response = connection.call(method, path, body)
        return json.loads(response) if response else None


def post_all(port: int, posts: Iterable[tuple[str, bytes, str]]) -> None:
    """Make many calls (path, body, kind), a few at a time; they must succeed."""
    posts = iter(posts)
    with ExitStack() as stack:
        connections = [
            stack.enter_context(HttpConnection(port)) for _ in range(FILLING_CONNECTIONS)
        ]
        while chosen_posts := list(islice(posts, len(connections))):
            for connection, (path, body, kind) in zip(connections, chosen_posts, strict=False):
                connection.send("POST", path, body, kind, MSGPACK)
            for connection, (path, _, _) in zip(connections, chosen_posts, strict=False):
                good(connection.read(), f"POST {path}")


class ScriptConnection:
    """A connection to Valkey's unix socket that runs one script: the minimum cost of a write."""

    SCRIPT = b"return redis.call('XADD', KEYS[1], '*', 'd', ARGV[1])"

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(REPLY_S_MAX)
        self._socket.connect(str(path))
        self._sha = self._ask(b"SCRIPT", b"LOAD", self.SCRIPT)

    def __enter__(self) -> "ScriptConnection":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def append(self, key: bytes, body: bytes) -> None:
        """Append one entry to the stream `key`; returns when it is on disk."""
        self._ask(b"EVALSHA", self._sha, b"1", key, body)

    def _ask(self, *words: bytes) -> bytes:
        packed = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
        self._socket.sendall(b"*%d\r\n%b" % (len(words), packed))
        said = b""
        while said.count(b"\r\n") < 2:  # a bulk string: its length, then its content
            if said.startswith(b"-"):
                raise Unmeasurable(f"the store refused: {said.decode(errors='replace').strip()}")
            said += self._socket.recv(4096)
        return said.split(b"\r\n")[1]
