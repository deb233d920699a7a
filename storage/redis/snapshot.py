r"""Snapshot of the hot store, transferred as to a replica: the server forks and sends it.

    client ──▶ REPLCONF capa eof · REPLCONF rdb-only 1 · SYNC
           ◀── \n, while it forks ▸ $EOF:<40 bytes> ▸ the snapshot ▸ the same 40 bytes
               or, from a server that writes its disk first: $<length> ▸ the snapshot

Nothing is required of the server's disk, and keys need not be named. Everything acknowledged before the request is
included, at one moment, so that a message in transfer from one queue to another is in the one or the other.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from time import monotonic
from typing import Any

from redis import ConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError
from redis.retry import Retry

from storage.domain import limits
from storage.domain.backup_manifest import BackupError
from storage.redis.transport.client import unreachable

_PIECE = 1 << 20
_MARK = 40
_LINE_MAX = 1_024
_WAIT_S_MIN = 0.001  # 0 would not wait at all
_Head = tuple[bytes, bytes]
"""Line before a snapshot, and the part of the snapshot received with it."""


CONNECTION_OPTIONS: dict[str, Any] = {
    "protocol": 2,
    "socket_timeout": limits.SNAPSHOT_WAIT_MS_MAX / limits.SECOND_MS,
    "socket_connect_timeout": limits.REDIS_REPLY_MS_MAX / limits.SECOND_MS,
    "retry": Retry(NoBackoff(), 0),
}
"""Options of connections over which a whole store passes."""


class SnapshotLine:
    """Connection to a server that asks for its snapshot as a replica does.

    Connected already when it is made, so that `request` is one packet. All methods raise StorageUnavailable when the
    connection is lost.
    """

    def __init__(self, url: str) -> None:
        self._head: _Head | None = None
        self._connection: Any = ConnectionPool.from_url(url, **CONNECTION_OPTIONS).make_connection()
        with _as_unreachable():
            self._connection.connect()  # type: ignore[no-untyped-call]
            for words in (("capa", "eof"), ("rdb-only", "1")):
                _send_option(self._connection, "REPLCONF", *words)

    def close(self) -> None:
        """Disconnect; the server ends its fork if that has no other reader."""
        self._connection.disconnect()

    def request(self) -> None:
        """Ask for the snapshot."""
        with _as_unreachable():
            self._connection.send_command("SYNC", check_health=False)

    def has_begun(self, until_s: float) -> bool:
        """Return whether the snapshot begins by this time of the monotonic clock.

        Its first line comes from the fork, so that its moment has passed. Raises BackupError when the server refuses.
        """
        line = self._connection._sock
        with _as_unreachable():
            try:
                self._head = _announcement(line, until_s)
            except TimeoutError:
                return False
            line.settimeout(CONNECTION_OPTIONS["socket_timeout"])
        return True

    def pieces(self) -> Iterator[bytes]:
        """Yield the snapshot (an RDB file). Raises BackupError when it is not complete."""
        with _as_unreachable():
            line = self._connection._sock
            yield from _received(line, self._head or _announcement(line))


def snapshot_of(url: str) -> Iterator[bytes]:
    """Yield the server's snapshot (an RDB file) in pieces.

    Raises BackupError when it sends none, StorageUnavailable when the connection is lost.
    """
    line = SnapshotLine(url)
    try:
        line.request()
        yield from line.pieces()
    finally:
        line.close()


def _send_option(connection: Any, *words: str) -> None:
    """Send an option that the server may not know: an older one sends more than we read."""
    try:
        connection.send_command(*words, check_health=False)
        connection.read_response()
    except ResponseError:
        return


@contextmanager
def _as_unreachable() -> Iterator[None]:
    try:
        yield
    except (RedisError, OSError) as error:
        raise unreachable(error) from None


def _received(line: socket.socket, head: _Head) -> Iterator[bytes]:
    announcement, rest = head
    if announcement.startswith(b"$EOF:"):
        yield from _until_mark(line, announcement[len(b"$EOF:") :], rest)
    else:
        yield from _counted(line, int(announcement[1:]), rest)


def _announcement(line: socket.socket, until_s: float = inf) -> _Head:
    """Return the line before the snapshot, and the part of the snapshot received with it.

    Raises TimeoutError: a server that has not forked yet sends an empty line each second.
    """
    buffer = b""
    while b"\n" not in buffer.lstrip(b"\n"):
        if until_s < inf:
            line.settimeout(max(_WAIT_S_MIN, until_s - monotonic()))
        if monotonic() > until_s:
            raise TimeoutError
        buffer = buffer.lstrip(b"\n") + _some(line)
        if len(buffer) > _PIECE:
            raise BackupError("the store did not answer SYNC with a snapshot")
    announcement, _, rest = buffer.lstrip(b"\n").partition(b"\n")
    announcement = announcement.rstrip(b"\r")[:_LINE_MAX]
    if not announcement.startswith(b"$"):
        raise BackupError(
            f"the store refused to send a snapshot: {announcement.decode(errors='replace')}"
        )
    return announcement, rest


def _until_mark(line: socket.socket, mark: bytes, buffer: bytes) -> Iterator[bytes]:
    while not buffer.endswith(mark):
        if len(buffer) > _MARK:
            yield buffer[:-_MARK]
            buffer = buffer[-_MARK:]
        buffer += _some(line)
    yield buffer[:-_MARK]


def _counted(line: socket.socket, left: int, buffer: bytes) -> Iterator[bytes]:
    while left:
        buffer = buffer or _some(line)
        piece, buffer = buffer[:left], b""
        left -= len(piece)
        yield piece


def _some(line: socket.socket) -> bytes:
    if not (chunk := line.recv(_PIECE)):
        raise BackupError("the store closed the connection while sending its snapshot; see its log")
    return chunk
