"""Connections to Postgres, and the only conversion of its errors to ours.

A transaction that did not reach its commit has changed nothing, so any failure before it is
`StorageUnavailable`. Only a commit that was sent and not answered has an unknown outcome.
"""

import asyncio
import select
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from time import perf_counter
from typing import Any, ClassVar, NoReturn, Self, cast

import psycopg
from psycopg.adapt import AdaptersMap
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.array import ListBinaryDumper
from sqlalchemy import URL, AdaptedConnection, QueuePool, event, make_url, text
from sqlalchemy.exc import DBAPIError, DisconnectionError, InvalidatePoolError
from sqlalchemy.exc import TimeoutError as NoConnectionFree
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_sessionmaker,
    create_async_engine,
)

from storage.domain import limits
from storage.domain.errors import (
    MillstreamError,
    OutcomeUnknown,
    StorageBusy,
    StorageFull,
    StorageUnavailable,
    ValidationFailed,
)
from storage.domain.histogram import LatencyBuffer
from storage.settings import InvalidUrl, StorageSettings, hosts_as_parameters

_DRIVER = "postgresql+psycopg"
_REPLY_SECONDS = limits.POSTGRES_REPLY_MS_MAX / limits.SECOND_MS
_CANCEL_SECONDS = limits.POSTGRES_CANCEL_MS_MAX / limits.SECOND_MS

_AWAY = "Postgres does not answer; try again."

_REFUSAL_CLASSES = ("08", "40", "53", "57")
"""SQLSTATE classes: connection, rolled back by a conflict, out of resources, shut down or cancelled."""

_REFUSALS = frozenset({"25006", "25P03", "55P03"})
"""Read-only, as a standby is; ended since its transaction was idle; lock timeout."""

_DISK_FULL = "53100"
_UNSTORABLE_TEXTS = ("22021", "22P05")  # character_not_in_repertoire, untranslatable_character
_UNSTORABLE = "A text contains NUL or half of a surrogate pair, which cannot be stored."
_UNDEFINED_TABLE = "42P01"

_IDLE = "idle_in_transaction_session_timeout"
_CHECK_S = limits.LISTEN_CHECK_MS // limits.SECOND_MS
KEEPALIVES = f"set tcp_keepalives_idle = {_CHECK_S}; set tcp_keepalives_interval = {_CHECK_S}; set tcp_keepalives_count = 2"
"""Statements by which Postgres gives up a lost machine after a check's time and two more: by default, after two hours."""

CHANGES_CATALOG = "changes_catalog"
"""Key in the `info` of a session that changes a definition or a credential."""


class Database:
    """Transactions, on at most as many connections as its engine's pool has."""

    before_catalog_change: Callable[[AsyncSession], Awaitable[None]] | None = None
    """Called at the end of a transaction that changes a definition or a credential."""

    is_away: Callable[[], bool] = staticmethod(lambda: False)
    """Returns whether an outage is known, in which one call in five seconds asks a silent Postgres."""

    _retry_s = 0.0  # until then a silent Postgres is not asked again

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._sessions = async_sessionmaker(engine, expire_on_commit=False)
        # As an option of the engine it would be set where a call that is cancelled loses its connection.
        self._autocommit_sessions = async_sessionmaker(
            engine, expire_on_commit=False, execution_options={"isolation_level": "AUTOCOMMIT"}
        )
        self.timings = {"read": LatencyBuffer(), "write": LatencyBuffer()}
        """Durations of whole transactions, including the wait for a connection."""
        self.open_transactions = 0

    @property
    def in_use(self) -> int:
        """Number of connections in use by transactions."""
        return cast(QueuePool, self._engine.pool).checkedout()

    @contextmanager
    def _timed(self, op: str) -> Iterator[None]:
        began = perf_counter()
        self.open_transactions += 1
        try:
            yield
        finally:
            self.open_transactions -= 1
            self.timings[op].observe(perf_counter() - began)

    @contextmanager
    def _unless_silent(self) -> Iterator[None]:
        """Refuse a transaction at once if a silent Postgres was just asked.

        One that refuses connections is asked by every call, so that a restart is noticed at once. Raises StorageUnavailable.
        """
        began_s = perf_counter()
        if began_s < self._retry_s and self.is_away():
            raise StorageUnavailable(_AWAY)
        if self._retry_s:
            self._retry_s = began_s + _REPLY_SECONDS  # other calls do not wait for this one
        try:
            yield
        except Exception as error:
            is_unanswered = isinstance(error, (StorageUnavailable, StorageBusy, OutcomeUnknown))
            is_silent = is_unanswered and perf_counter() - began_s > _REPLY_SECONDS / 2
            self._retry_s = perf_counter() + _REPLY_SECONDS if is_silent else 0.0
            raise
        self._retry_s = 0.0

    def reading(self) -> AbstractAsyncContextManager[AsyncSession]:
        """Open a session whose statements are transactions of their own, without BEGIN.

        Raises StorageUnavailable or StorageBusy.
        """
        return self._autocommit("read")

    def autocommitting(self) -> AbstractAsyncContextManager[AsyncSession]:
        """Open a session as `reading` does, for a single write that is harmless to repeat.

        It takes one round trip instead of three. Raises StorageUnavailable, StorageBusy or StorageFull.
        """
        return self._autocommit("write")

    @asynccontextmanager
    async def _autocommit(self, op: str) -> AsyncGenerator[AsyncSession]:
        with self._unless_silent(), _translated(StorageUnavailable), self._timed(op):
            async with self._autocommit_sessions() as session, asyncio.timeout(_REPLY_SECONDS):
                yield session

    @asynccontextmanager
    async def writing(
        self,
        *,
        unknown: type[MillstreamError] = OutcomeUnknown,
        limit_ms: int = limits.POSTGRES_REPLY_MS_MAX,
        dry_run: bool = False,
    ) -> AsyncGenerator[AsyncSession]:
        """Open a transaction that is committed at the end, unless its block raises.

        A dry run is rolled back instead.

        The block has `limit_ms`. Raises StorageUnavailable, StorageBusy or StorageFull when nothing
        happened, and `unknown` when the commit was not answered: a caller for whom doing it twice is
        harmless passes StorageUnavailable.
        """
        with self._unless_silent(), _translated(StorageUnavailable), self._timed("write"):
            async with self._sessions() as session:
                async with asyncio.timeout(limit_ms / limits.SECOND_MS):
                    if limit_ms > limits.POSTGRES_REPLY_MS_MAX:
                        await session.execute(text(f"set local {_IDLE} = {2 * limit_ms}"))
                    yield session
                    await session.flush()
                    if self.before_catalog_change and session.info.get(CHANGES_CATALOG):
                        await self.before_catalog_change(session)
                if dry_run:
                    return
                with _translated(unknown):
                    async with asyncio.timeout(_REPLY_SECONDS):
                        await session.commit()

    async def ping(self) -> None:
        """Check that Postgres answers. Raises StorageUnavailable."""
        async with self.reading() as session:
            await session.execute(text("select 1"))

    async def close(self) -> None:
        """Close the idle connections; those in use close when they are returned."""
        await self._engine.dispose()


@asynccontextmanager
async def open_database(settings: StorageSettings) -> AsyncGenerator[Database]:
    """Open the database of `settings`. Connects at the first use, so this never fails."""
    database = Database(_open_engine(settings))
    try:
        yield database
    finally:
        await database.close()


def _open_engine(settings: StorageSettings) -> AsyncEngine:
    listening = 1  # the LISTEN connection counts too
    engine = create_async_engine(
        driver_url(settings.database_url),
        pool_size=max(1, settings.postgres_connections_max - listening),
        max_overflow=0,
        pool_use_lifo=True,  # an idle process uses one connection, and its server process stays warm
        pool_timeout=limits.POSTGRES_CONNECTION_WAIT_MS_MAX / limits.SECOND_MS,
        hide_parameters=True,  # in errors, which are logged
        use_native_hstore=False,  # no column has this type, whose lookup takes three round trips
        connect_args=connection_options()
        | {"async_creator_fn": DriverConnection.connect, "context": _adapters()},
    )
    event.listen(engine.sync_engine, "checkout", _discard_unusable)
    return engine


def _adapters() -> AdaptersMap:
    """Return the driver's conversions; lists are binary: JSON as text takes 80 times as long."""
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_dumper(list, ListBinaryDumper)
    return adapters


def _discard_unusable(connection: AdaptedConnection, *_: object) -> None:
    """Have the pool replace a connection that is not idle, or that Postgres has ended.

    Postgres sends nothing unasked but why it ends a connection, so the socket of a usable one has nothing to read. That is
    known without a round trip. All older ones are replaced then, too.
    """
    driver: psycopg.AsyncConnection[Any] = connection.driver_connection
    if driver.closed or _is_readable(driver.fileno()):
        raise InvalidatePoolError
    if not _is_idle(driver):
        raise DisconnectionError


def _is_idle(driver: psycopg.AsyncConnection[Any]) -> bool:
    """Return whether a connection is ready for a statement.

    A call that is cancelled while it sends several rows may leave the driver's pipeline open: then statements have no results.
    """
    idle = (psycopg.pq.TransactionStatus.IDLE, psycopg.pq.PipelineStatus.OFF)
    return (driver.info.transaction_status, driver.info.pipeline_status) == idle


def _is_readable(file: int) -> bool:
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(0))


class DriverConnection(psycopg.AsyncConnection[Any]):
    """Connection whose statements end soon after they are cancelled, to one of several hosts.

    Postgres ends its session, and frees the locks of its transaction, if this process stalls or its machine is lost.

    The driver alone waits five seconds for a cancellation, and five more for its effect, to save a connection that the pool
    discards. Of several hosts it would try the first one first each time, for as long as a call may take: the machine of a lost
    primary, which answers nothing, would hide its standby.
    """

    _first: ClassVar[dict[tuple[str, ...], int]] = {}
    """Index of the host to try first, by hosts: the one that answered last."""

    @classmethod
    async def connect(cls, conninfo: str = "", **options: Any) -> Self:
        """Connect; of several hosts, to the one that answered last if it still does."""
        connection = await cls._connect_any(conninfo, **options)
        try:
            await connection.set_autocommit(True)
            await connection.execute(
                f"{KEEPALIVES}; set {_IDLE} = {limits.POSTGRES_IDLE_MS_MAX}".encode()
            )
            await connection.set_autocommit(bool(options.get("autocommit")))
        except BaseException:  # also the end of the time for the call
            connection.pgconn.finish()
            raise
        return connection

    @classmethod
    async def _connect_any(cls, conninfo: str, **options: Any) -> Self:
        parameters = conninfo_to_dict(conninfo) | options
        hosts, ports = (str(parameters.get(name) or "").split(",") for name in ("host", "port"))
        if len(hosts) == 1 or "hostaddr" in parameters:
            return await super().connect(conninfo, **options)
        key = (*hosts, *ports)
        first = cls._first.get(key, 0)
        order = [*range(first, len(hosts)), *range(first)]
        several = {
            "host": ",".join(hosts[index] for index in order),
            "port": ",".join(ports[index % len(ports)] for index in order),
            "connect_timeout": limits.POSTGRES_HOST_CONNECT_MS_MAX // limits.SECOND_MS,
        }
        try:
            connection = await super().connect(conninfo, **options | several)
        except BaseException:  # also the end of the time for the call
            cls._first[key] = order[1]
            raise
        answered = (connection.info.host, str(connection.info.port))
        places = [(host, ports[index % len(ports)] or "5432") for index, host in enumerate(hosts)]
        cls._first[key] = places.index(answered) if answered in places else first
        return connection

    async def _try_cancel(self, *, timeout: float = _CANCEL_SECONDS) -> NoReturn:  # noqa: ASYNC109  the driver's signature
        with suppress(psycopg.Error, OSError, TimeoutError):
            async with asyncio.timeout(min(timeout, _CANCEL_SECONDS)):
                await self.cancel_safe(timeout=timeout)
        self.pgconn.finish()
        raise psycopg.errors.QueryCanceled


def connection_options() -> dict[str, str | int]:
    """Return the options of every connection: its application name and timeouts.

    The kernel gives a silent peer up after a check's time and two more, so that the pool replaces its idle connections to
    a lost machine.
    """
    return {
        "application_name": "millstream",
        "connect_timeout": int(_REPLY_SECONDS),
        "keepalives": 1,
        "keepalives_idle": _CHECK_S,
        "keepalives_interval": _CHECK_S,
        "keepalives_count": 2,
    }


def driver_url(url: str) -> str:
    """Convert `postgresql://…` to SQLAlchemy's form with the driver's name.

    Raises InvalidUrl.
    """
    conninfo(url)
    return _parsed(url).render_as_string(hide_password=False)


def conninfo(url: str) -> str:
    """Convert `postgresql://…`, as SQLAlchemy parses it, for psycopg alone.

    libpq parses URLs differently, for example spaces. Raises InvalidUrl.
    """
    parsed = _parsed(url)
    _, options = parsed.get_dialect()().create_connect_args(parsed)
    try:
        return make_conninfo(**options)
    except psycopg.ProgrammingError as error:
        raise InvalidUrl(f"database_url: {str(error).strip()}") from None


def _parsed(url: str) -> URL:
    return make_url(hosts_as_parameters(url)).set(drivername=_DRIVER)


@contextmanager
def _translated(lost: type[MillstreamError]) -> Iterator[None]:
    """Convert errors: `lost` when no answer came, `refusal` for an error of the server."""
    try:
        yield
    except TimeoutError as error:
        raise lost("Postgres timed out.") from error
    except NoConnectionFree as error:
        raise StorageBusy("All Postgres connections are in use; nothing happened.") from error
    except UnicodeEncodeError as error:
        raise ValidationFailed(_UNSTORABLE) from error
    except DBAPIError as error:
        if error.connection_invalidated:
            raise lost("The connection to Postgres was lost.") from error
        raise refusal(error.orig) or error from error.orig


def refusal(error: BaseException | None) -> MillstreamError | None:
    """Convert an error of the driver after which nothing has happened; None for a bug of ours."""
    if not isinstance(error, psycopg.Error):
        return None
    state = error.sqlstate or ""
    if state == _DISK_FULL:
        return StorageFull("Postgres is out of disk space; nothing happened.")
    if state in _UNSTORABLE_TEXTS or _has_nul(error):
        return ValidationFailed(_UNSTORABLE)
    if state == _UNDEFINED_TABLE:
        return StorageUnavailable("The database has not been migrated to this version.")
    if state.startswith(_REFUSAL_CLASSES) or state in _REFUSALS or _never_connected(error):
        return StorageUnavailable(f"Postgres rejected the statement: {_first_line(error)}")
    return None


def _has_nul(error: psycopg.Error) -> bool:
    """Return whether the driver refused a text, before it sent anything."""
    return isinstance(error, psycopg.DataError) and "NUL (0x00)" in str(error)


def _never_connected(error: psycopg.Error) -> bool:
    return isinstance(error, psycopg.OperationalError) and error.sqlstate is None


def _first_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0]
