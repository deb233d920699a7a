"""Real Postgres under virtual time: each statement is one step of the simulation.

Statements run on a synchronous connection, so that the simulated processes see no real time pass and the same seed takes
the same course. Between two statements of a transaction others run their own, at the isolation level that each one set.
A statement that meets a lock is rolled back to its beginning and tried again later.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    nullcontext,
)
from random import Random
from typing import Any

from sqlalchemy import ClauseElement, Engine, TextClause, create_engine, event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from storage.domain.errors import StorageUnavailable
from storage.domain.histogram import LatencyBuffer
from storage.postgres.database import Database, driver_url
from storage.postgres.listener import Listener
from storage.postgres.queries import query
from tests.simulator.clock import now_ms

_LATENCY_S = 0.002
_LOCK_RETRY_S = 0.02
_NOTICE_S = 0.05
_LOCK_NOT_AVAILABLE = "55P03"
_LOCKS = re.compile(r"\b(insert|update|delete|share|pg_advisory_xact_lock)\b|^$", re.IGNORECASE)
_CLOCK = """
    CREATE SCHEMA IF NOT EXISTS simulated;
    CREATE OR REPLACE FUNCTION simulated.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS $$ SELECT to_timestamp(current_setting('simulated.now_s')::float8) $$;
"""
_SET_CLOCK = text("SELECT set_config('simulated.now_s', :now_s, false)")


_words: dict[object, str] = {}
"""Texts of statements by their cache keys: compiling a statement takes longer than running it."""


class Postgres:
    """The database of all simulated processes, and the announcements on their way."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine: Engine = create_engine(
            driver_url(url), pool_size=20, max_overflow=50, pool_use_lifo=True
        )
        event.listen(self.engine, "connect", _limit_lock_waits)
        self.up = True
        self.transactions = 0
        """Number of open transactions."""
        self.run(_CLOCK)
        self._listeners: list[SimulatedListener] = []

    def close(self) -> None:
        self.engine.dispose()

    def run(self, statements: str) -> None:
        """Run statements outside of the simulation."""
        with self.engine.begin() as connection:
            connection.execute(text(statements))

    def listen(self, listener: "SimulatedListener") -> None:
        self._listeners.append(listener)

    def forget(self, listener: "SimulatedListener") -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)

    def announce(self, announcements: Iterable[Mapping[str, str]]) -> None:
        """Send what a commit has announced to every listener.

        Postgres itself would send them at a time that no seed decides.
        """
        for announcement in announcements:
            for listener in self._listeners:
                listener.receive(announcement["channel"], announcement["payload"])


def _limit_lock_waits(connection: Any, _: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '1ms'; SET synchronous_commit = off")
        cursor.execute("SET search_path = simulated, pg_catalog, public")
    connection.commit()


class SimulatedDatabase(Database):
    """Transactions of one process. `fails` decides whether a commit's answer gets lost."""

    def __init__(self, postgres: Postgres, chance: Random, fails: Callable[[], bool]) -> None:
        self.timings = {"read": LatencyBuffer(), "write": LatencyBuffer()}
        self.open_transactions = 0
        self.chance = chance
        self.postgres = postgres
        self.fails = fails
        self._is_cut_off = False
        self._sessions = self._autocommit_sessions = self._session  # type: ignore[assignment]

    @property
    def in_use(self) -> int:
        return 0

    def cut_off(self) -> None:
        """End the connections of this process: open transactions are rolled back."""
        self._is_cut_off = True

    def check_connection(self) -> None:
        """Raise TimeoutError if Postgres does not answer this process."""
        if self._is_cut_off or not self.postgres.up:
            raise TimeoutError

    @asynccontextmanager
    async def _session(self) -> "AsyncGenerator[_Session]":
        await self.reply()
        self.check_connection()
        with Session(self.postgres.engine, expire_on_commit=False) as session:
            self.postgres.transactions += 1
            try:
                yield _Session(session, self)
            finally:
                self.postgres.transactions -= 1

    def autocommitting(self) -> AbstractAsyncContextManager[AsyncSession]:
        return self.writing(unknown=StorageUnavailable)

    async def reply(self) -> None:
        """Wait for the reply to a statement."""
        await asyncio.sleep(self.chance.random() * _LATENCY_S)

    async def close(self) -> None:
        return


class _Session:
    """The verbs of an `AsyncSession` that repositories use.

    A statement has its effect when it is sent, and its reply arrives later.
    """

    def __init__(self, session: Session, database: SimulatedDatabase) -> None:
        self._session = session
        self._database = database
        self._announced: list[Mapping[str, str]] = []
        self.info: dict[str, object] = {}

    async def execute(self, *arguments: Any, **options: Any) -> Any:
        if arguments[0] is query("notify"):
            self._announced.append(arguments[1])
            return None
        return await self._step(self._session.execute, *arguments, **options)

    async def scalar(self, *arguments: Any, **options: Any) -> Any:
        return await self._step(self._session.scalar, *arguments, **options)

    async def scalars(self, *arguments: Any, **options: Any) -> Any:
        return await self._step(self._session.scalars, *arguments, **options)

    async def get(self, *arguments: Any, **options: Any) -> Any:
        return await self._step(self._session.get, *arguments, **options)

    async def connection(self, **options: Any) -> None:
        """Set the isolation level, before the first statement."""
        self._session.connection(**options)

    async def flush(self) -> None:
        if self._session.new or self._session.dirty or self._session.deleted:
            await self._step(self._session.flush)

    async def commit(self) -> None:
        self._database.check_connection()
        self._session.commit()
        self._database.postgres.announce(self._announced)
        await self._database.reply()
        self._database.check_connection()
        if self._database.fails():
            raise TimeoutError

    def add(self, row: Any) -> None:
        self._session.add(row)

    def add_all(self, rows: Iterable[Any]) -> None:
        self._session.add_all(rows)

    async def delete(self, row: Any) -> None:
        self._session.delete(row)

    async def _step(self, verb: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Run a statement; wait while another transaction has a lock that it needs."""
        words = _words_of(*arguments)
        while True:
            self._database.check_connection()
            if "clock_timestamp" in words:
                self._session.execute(_SET_CLOCK, {"now_s": str(now_ms() / 1000)})
            try:
                with self._savepoint(words):
                    result = verb(*arguments, **options)
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", "") != _LOCK_NOT_AVAILABLE:
                    raise
                await asyncio.sleep(_LOCK_RETRY_S)
            else:
                await self._database.reply()
                return result

    def _savepoint(self, words: str) -> AbstractContextManager[object]:
        """Return a savepoint, unless the statement cannot meet a lock of another transaction."""
        is_alone = self._database.postgres.transactions == 1
        if is_alone or not _LOCKS.search(words):
            return nullcontext()
        return self._session.begin_nested()


def _words_of(statement: Any = "", *_: Any) -> str:
    """Return the text of a statement; empty for a flush."""
    if isinstance(statement, TextClause):
        return statement.text
    cache_key = statement._generate_cache_key() if isinstance(statement, ClauseElement) else None
    if cache_key is None:
        return str(statement)
    if cache_key.key not in _words:
        _words[cache_key.key] = str(statement)
    return _words[cache_key.key]


class SimulatedListener(Listener):
    """Announcements that arrive some time after the commit."""

    def __init__(self, postgres: Postgres, chance: Random) -> None:
        super().__init__("postgresql://simulated/")
        self._postgres = postgres
        self._chance = chance

    async def run(self) -> None:
        self._postgres.listen(self)
        self._listening = True
        self._attempted.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._postgres.forget(self)
            self._lose()

    def receive(self, channel: str, payload: str) -> None:
        """Pass on an announcement after a delay, if this process subscribes to its channel."""
        for on_change, _ in self._channels.get(channel, ()):
            delay_s = self._chance.random() * _NOTICE_S
            asyncio.get_running_loop().call_later(delay_s, on_change, payload)
