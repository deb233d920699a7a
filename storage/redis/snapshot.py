r"""Snapshot of the hot store, transferred as to a replica: the server forks and sends it.

    client ──▶ REPLCONF capa eof · REPLCONF rdb-only 1 · SYNC
           ◀── \n, while it forks ▸ $EOF:<40 bytes> ▸ the snapshot ▸ the same 40 bytes
               or, from a server that writes its disk first: $<length> ▸ the snapshot

Nothing is required of the server's disk, and keys need not be named. Everything acknowledged before the request is
included, at one moment, so that a message in transfer from one queue to another is in the one or the other.
"""

import socket
from collections.abc import Iterator
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


CONNECTION_OPTIONS: dict[str, Any] = {
    "protocol": 2,
    "socket_timeout": limits.SNAPSHOT_WAIT_MS_MAX / limits.SECOND_MS,
    "socket_connect_timeout": limits.REDIS_REPLY_MS_MAX / limits.SECOND_MS,
    "retry": Retry(NoBackoff(), 0),
}
"""Options of connections over which a whole store passes."""


def snapshot_of(url: str) -> Iterator[bytes]:
    """Yield the server's snapshot (an RDB file) in pieces.

    Raises BackupError when it sends none, StorageUnavailable when the connection is lost.
    """
    pool = ConnectionPool.from_url(url, **CONNECTION_OPTIONS)
    connection: Any = pool.make_connection()
    try:
        connection.connect()
        for words in (("capa", "eof"), ("rdb-only", "1")):
            _send_option(connection, "REPLCONF", *words)
        connection.send_command("SYNC", check_health=False)
        yield from _received(connection._sock)
    except (RedisError, OSError) as error:
        raise unreachable(error) from None
    finally:
        connection.disconnect()


def _send_option(connection: Any, *words: str) -> None:
    """Send an option that the server may not know: an older one sends more than we read."""
    try:
        connection.send_command(*words, check_health=False)
        connection.read_response()
    except ResponseError:
        return


def _received(line: socket.socket) -> Iterator[bytes]:
    announcement, rest = _announcement(line)
    if announcement.startswith(b"$EOF:"):
        yield from _until_mark(line, announcement[len(b"$EOF:") :], rest)
    else:
        yield from _counted(line, int(announcement[1:]), rest)


def _announcement(line: socket.socket) -> tuple[bytes, bytes]:
    """Return the line before the snapshot, and the part of the snapshot received with it."""
    buffer = b""
    while b"\n" not in buffer.lstrip(b"\n"):
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
