"""The hot store at one moment, taken as a replica takes it: its server forks, and sends what it held then.

    us ──▶ REPLCONF capa eof · REPLCONF rdb-only 1 · SYNC
       ◀── \\n, while it forks ▸ $EOF:<40 bytes> ▸ the snapshot ▸ the same 40 bytes
           or, from a server that writes its disk first: $<length> ▸ the snapshot

Nothing is asked of the server's disk, and keys need not be named. What it acknowledged before it was asked is in it, and all
of it is of one moment, so that a message on its way from one queue to another is in the one or the other.
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


def snapshot_of(url: str) -> Iterator[bytes]:
    """The server's snapshot (an RDB file) in pieces. Raises BackupError when it gives none, StorageUnavailable when it
    goes away."""
    pool = ConnectionPool.from_url(
        url,
        protocol=2,
        socket_timeout=limits.SNAPSHOT_WAIT_MS_MAX / limits.SECOND_MS,
        socket_connect_timeout=limits.REDIS_REPLY_MS_MAX / limits.SECOND_MS,
        retry=Retry(NoBackoff(), 0),
    )
    connection: Any = pool.make_connection()
    try:
        connection.connect()
        for words in (("capa", "eof"), ("rdb-only", "1")):
            _say(connection, "REPLCONF", *words)
        connection.send_command("SYNC", check_health=False)
        yield from _received(connection._sock)
    except (RedisError, OSError) as error:
        raise unreachable(error) from None
    finally:
        connection.disconnect()


def _say(connection: Any, *words: str) -> None:
    """What the server does not know it need not: an older one sends more than we read."""
    try:
        connection.send_command(*words, check_health=False)
        connection.read_response()
    except ResponseError:
        return


def _received(line: socket.socket) -> Iterator[bytes]:
    said, rest = _announcement(line)
    if said.startswith(b"$EOF:"):
        yield from _until_mark(line, said[len(b"$EOF:") :], rest)
    else:
        yield from _counted(line, int(said[1:]), rest)


def _announcement(line: socket.socket) -> tuple[bytes, bytes]:
    """The line before the snapshot, and what of the snapshot came with it."""
    held = b""
    while b"\n" not in held.lstrip(b"\n"):
        held = held.lstrip(b"\n") + _some(line)
        if len(held) > _PIECE:
            raise BackupError("the store answers SYNC with something else than a snapshot")
    said, _, rest = held.lstrip(b"\n").partition(b"\n")
    said = said.rstrip(b"\r")[:_LINE_MAX]
    if not said.startswith(b"$"):
        raise BackupError(f"the store gives no snapshot: {said.decode(errors='replace')}")
    return said, rest


def _until_mark(line: socket.socket, mark: bytes, held: bytes) -> Iterator[bytes]:
    while not held.endswith(mark):
        if len(held) > _MARK:
            yield held[:-_MARK]
            held = held[-_MARK:]
        held += _some(line)
    yield held[:-_MARK]


def _counted(line: socket.socket, left: int, held: bytes) -> Iterator[bytes]:
    while left:
        held = held or _some(line)
        piece, held = held[:left], b""
        left -= len(piece)
        yield piece


def _some(line: socket.socket) -> bytes:
    if not (some := line.recv(_PIECE)):
        raise BackupError("the store broke off while it sent its snapshot: its log says why")
    return some
