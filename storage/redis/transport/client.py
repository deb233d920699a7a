"""Connections to the hot store, and the only conversion of its errors to ours.

redis-py retries by default, and would so repeat a write whose answer was lost: every client and connection here is
built without retries.
"""

import socket
from importlib.metadata import version
from typing import Any, Protocol, cast

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.connection import (
    AbstractConnection,
    Connection,
    SSLConnection,
    UnixDomainSocketConnection,
)
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import (
    Sentinel,
    SentinelConnectionPool,
    SentinelManagedConnection,
    SentinelManagedSSLConnection,
)
from redis.backoff import NoBackoff
from redis.driver_info import DriverInfo
from redis.exceptions import (
    AskError,
    BusyLoadingError,
    ClusterDownError,
    ConnectionError,
    ExecAbortError,
    MasterDownError,
    MovedError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)

from storage.domain import limits
from storage.domain.errors import MillstreamError, OutcomeUnknown, StorageFull, StorageUnavailable
from storage.domain.replication.sentinel_url import is_sentinel_url, parse_sentinel_url
from storage.settings import InvalidUrl

_REFUSALS = (
    AskError,  # half of a log is being moved to another server
    BusyLoadingError,
    ClusterDownError,
    MasterDownError,
    ReadOnlyError,
    TryAgainError,
)
_WHO = DriverInfo().add_upstream_driver("millstream", version("millstream"))
"""Client name and version in CLIENT LIST; redis-py would read its own version for each connection."""

_REFUSAL_PREFIXES = ("MISCONF", "BUSY", "NOREPLICAS")
_DEMOTED = "UNBLOCKED"
"""Prefix of the error to a call that was waiting when the server became a replica: it may have taken effect."""


class ConnectionFactory(Protocol):
    """Factory of connections to one server, or to whichever is the primary."""

    def make_connection(self) -> AbstractConnection:
        """Make a connection owned by the caller."""
        ...

    async def aclose(self) -> None:
        """Close the connections that it owns."""
        ...


class ScriptFailed(RuntimeError):
    """Unexpected failure of a script; its changes up to then persist."""


class SlotMoved(StorageUnavailable):
    """The contacted server does not have the slot; it did nothing."""


class _EndsCleanly(AbstractConnection):
    """Connection that reports a late write as a loss, and sends nothing once abandoned.

    A late write is one after its end: uvloop raises RuntimeError for a transport that has closed, which redis-py does not
    catch.
    """

    async def send_packed_command(self, *arguments: Any, **options: Any) -> None:
        try:
            await super().send_packed_command(*arguments, **options)
        except RuntimeError as error:
            raise ConnectionError(f"The connection was closed: {error}") from error

    async def disconnect(self, nowait: bool = False, *arguments: Any, **options: Any) -> None:
        """Disconnect; with `nowait`, abort the transport.

        So a store that hangs keeps no memory of ours, and no socket, for data it has not read.
        """
        if nowait and self._writer is not None:
            self._writer.transport.abort()
        await super().disconnect(nowait, *arguments, **options)


class _SentinelTcp(_EndsCleanly, SentinelManagedConnection):
    """TCP connection to the primary that Sentinel names."""


class _SentinelTls(_EndsCleanly, SentinelManagedSSLConnection):
    """TLS connection to the primary that Sentinel names."""


class _SentinelPool(SentinelConnectionPool):
    """Pool that closes its connections to the Sentinels too."""

    async def aclose(self) -> None:
        await super().aclose()
        for sentinel in self.sentinel_manager.sentinels:
            await sentinel.aclose()


class _Tcp(_EndsCleanly, Connection):
    """TCP connection."""


class _Tls(_EndsCleanly, SSLConnection):
    """TLS connection."""


class _Unix(_EndsCleanly, UnixDomainSocketConnection):
    """Unix socket connection whose send buffer holds a whole flush.

    Data that does not fit waits for our event loop, and the store waits for that. TCP sizes its buffer itself.
    """

    async def _connect(self) -> None:
        await super()._connect()  # type: ignore[no-untyped-call]
        if self._writer is not None:
            connected = self._writer.get_extra_info("socket")
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, limits.FLUSH_BYTES_MAX)


_OURS: dict[type[AbstractConnection], type[AbstractConnection]] = {
    Connection: _Tcp,
    SSLConnection: _Tls,
    UnixDomainSocketConnection: _Unix,
}


def open_pool(url: str) -> ConnectionPool:
    """Open a pool whose connections never retry and have no time-out: the pipeline has one.

    Raises InvalidUrl.
    """
    return _pool_at(url)


def open_client(url: str, *, waits: bool = False) -> Redis:
    """Open a client for uses off the hot path.

    `waits`: for a subscription, which reads without end. Raises InvalidUrl.
    """
    pool = _pool_at(
        url,
        decode_responses=True,
        socket_timeout=None if waits else limits.REDIS_REPLY_MS_MAX / limits.SECOND_MS,
        health_check_interval=15,
    )
    return Redis.from_pool(pool)


def _pool_at(url: str, **options: Any) -> ConnectionPool:
    ours = {
        "protocol": 2,
        "driver_info": _WHO,
        "socket_timeout": None,
        "socket_connect_timeout": limits.REDIS_REPLY_MS_MAX / limits.SECOND_MS,
        "retry": Retry(NoBackoff(), 0),
        "retry_on_error": [],
    }
    if is_sentinel_url(url):
        return _sentinel_pool(url, ours | options)
    try:
        pool = ConnectionPool.from_url(url, **(ours | options))
        pool.connection_class = _OURS[pool.connection_class]
        make_connection(pool)  # the first use of the options, so it validates them
    except ValueError as error:
        raise InvalidUrl(f"redis_url: {error}") from None
    except TypeError as error:
        option = str(error).rpartition(" ")[2]
        raise InvalidUrl(f"redis_url: invalid connection option {option}") from None
    return pool


def _sentinel_pool(url: str, options: dict[str, Any]) -> ConnectionPool:
    """Open a pool whose connections ask the Sentinels for the primary, each time they connect."""
    try:
        parsed = parse_sentinel_url(url)
    except ValueError as error:
        raise InvalidUrl(f"redis_url: {error}") from None
    wait_s = limits.SENTINEL_REPLY_MS_MAX / limits.SECOND_MS
    of_sentinels = parsed.sentinel_options(wait_s) | {"retry": Retry(NoBackoff(), 0)}
    sentinels = cast(Any, Sentinel)(parsed.sentinels, sentinel_kwargs=of_sentinels)
    pool: ConnectionPool = cast(Any, _SentinelPool)(
        parsed.name,
        sentinels,
        connection_class=_SentinelTls if parsed.is_tls else _SentinelTcp,
        username=parsed.username,
        password=parsed.password,
        db=parsed.db,
        **options,
    )
    return pool


def make_connection(pool: ConnectionFactory | ConnectionPool) -> AbstractConnection:
    """Make a connection owned by the caller, not tracked by the pool."""
    return cast(ConnectionFactory, pool).make_connection()


def refused(error: ResponseError) -> MillstreamError | ScriptFailed:
    """Convert the server's refusal to our error.

    After StorageFull and StorageUnavailable it did nothing.
    """
    if isinstance(error, OutOfMemoryError) or "OOM" in str(error)[:80]:
        return StorageFull()
    if isinstance(error, ExecAbortError):
        return StorageUnavailable("The store rejected another command of the same batch.")
    if isinstance(error, _REFUSALS) or str(error).startswith(_REFUSAL_PREFIXES):
        return StorageUnavailable(f"The store rejects writes: {error}")
    return OutcomeUnknown() if str(error).startswith(_DEMOTED) else ScriptFailed(str(error))


def kind_of(error: ResponseError) -> str:
    """Return the label under which a refusal is counted, one of a small set."""
    if isinstance(error, OutOfMemoryError) or "OOM" in str(error)[:80]:
        return "oom"
    if isinstance(error, BusyLoadingError):
        return "loading"
    if isinstance(error, ReadOnlyError):
        return "readonly"
    if isinstance(error, MovedError | AskError | ClusterDownError | TryAgainError):
        return "moved"
    kind = str(error).partition(" ")[0].lower()
    return kind if kind in ("misconf", "busy", "noreplicas") else "other"


def unreachable(error: RedisError | OSError) -> StorageUnavailable:
    """Return the error for a store that could not be reached, so that nothing was sent."""
    if isinstance(error, MovedError):
        return SlotMoved(f"The server does not own the slot: {error}")
    return StorageUnavailable(f"The store is unreachable: {type(error).__name__}")


Reply = Any
"""Answer to a command: bytes, an integer, None, or a list of these."""
