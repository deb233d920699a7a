"""Postgres failures become our errors: nothing happened, or outcome unknown."""

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator
from typing import Any
from unittest import mock
from urllib.parse import quote, urlsplit

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.errors import OutcomeUnknown, StorageBusy, StorageUnavailable
from storage.postgres.database import (
    Database,
    DriverConnection,
    conninfo,
    driver_url,
    open_database,
)
from storage.postgres.listener import Listener, running
from storage.settings import StorageSettings
from tests.conditions import eventually
from tests.integration.fault_proxy import running_database_proxy

ADD = text("insert into namespaces (name, account_id) values ('acme', '123456789012')")
LOCK = text("select name from namespaces where name = 'default' for update")
COUNT = text("select count(*) from namespaces where name = 'acme'")


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    where = StorageSettings(redis_url="redis://unused", database_url=database_url)
    async with open_database(where) as database:
        yield database


async def test_committed_write_is_readable(database):
    async with database.writing() as session:
        await session.execute(ADD)

    assert await count(database) == 1


async def test_failing_block_writes_nothing(database):
    async def add_and_fail() -> None:
        async with database.writing() as session:
            await session.execute(ADD)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await add_and_fail()

    assert await count(database) == 0


async def test_connection_lost_before_commit_means_nothing_happened(database, database_url):
    async def add_twice() -> None:
        async with database.writing() as session:
            await session.execute(ADD)
            await lose_connection(session, database_url)
            await session.execute(COUNT)

    with pytest.raises(StorageUnavailable):
        await add_twice()

    assert await count(database) == 0


async def test_connection_lost_during_commit_is_outcome_unknown(database, database_url):
    async def add() -> None:
        async with database.writing() as session:
            await session.execute(ADD)
            await lose_connection(session, database_url)

    with pytest.raises(OutcomeUnknown):
        await add()


async def test_idempotent_caller_gets_unavailable_instead_of_unknown(database, database_url):
    async def add() -> None:
        async with database.writing(unknown=StorageUnavailable) as session:
            await session.execute(ADD)
            await lose_connection(session, database_url)

    with pytest.raises(StorageUnavailable):
        await add()


async def test_pool_recovers_after_postgres_drops_connections(database, database_url):
    await database.ping()

    with psycopg.connect(database_url, autocommit=True) as operator:
        operator.execute(
            "select pg_terminate_backend(pid, 1000) from pg_stat_activity"
            " where application_name = 'millstream' and datname = current_database()"
        )

    assert await count(database) == 0


async def test_usable_connection_is_used_again(database):
    first, second = await backend_pid(database), await backend_pid(database)

    assert first == second


@pytest.mark.parametrize("verb", ["reading", "autocommitting"])
async def test_connection_of_cancelled_caller_returns_to_pool(database, monkeypatch, verb):
    """A connection that is collected rather than returned is dropped, with a warning."""
    entered = asyncio.Event()

    async def never_set(*_: object) -> None:
        entered.set()
        await asyncio.Event().wait()

    async def ask() -> None:
        async with getattr(database, verb)() as session:
            await session.execute(COUNT)

    await ask()
    monkeypatch.setattr(psycopg.AsyncConnection, "set_autocommit", never_set)
    asking = asyncio.create_task(ask())
    await entered.wait()
    monkeypatch.undo()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        await end(asking)
        gc.collect()

    assert [warning.message for warning in caught] == []
    assert database.in_use == 0
    await ask()


async def test_single_write_commits_itself(database):
    async with database.autocommitting() as session:
        await session.execute(ADD)
        assert await count(database) == 1  # another connection sees it
        assert await session.scalar(text("select pg_current_xact_id_if_assigned()")) is None


async def test_single_write_without_answer_is_unavailable(database, database_url):
    async def add() -> None:
        async with database.autocommitting() as session:
            await lose_connection(session, database_url)
            await session.execute(ADD)

    with pytest.raises(StorageUnavailable):
        await add()


async def test_locks_of_stalled_process_are_freed(database, database_url, monkeypatch):
    """A paused process kept the row of a group locked for as long as it was paused, and a lost machine for two hours."""
    monkeypatch.setattr(limits, "POSTGRES_IDLE_MS_MAX", 100)

    async def lock_and_stall() -> None:
        async with database.writing() as session:
            await session.execute(LOCK)
            with psycopg.connect(database_url) as other:  # the event loop stands still meanwhile
                other.execute("set lock_timeout = 10000")
                other.execute(LOCK.text)
            await session.execute(COUNT)

    with pytest.raises(StorageUnavailable):
        await lock_and_stall()

    await database.ping()


async def test_long_decision_may_be_idle(database):
    """The hot store is asked meanwhile."""
    async with database.writing(limit_ms=limits.POSTGRES_DECISION_MS_MAX) as session:
        idle_max = await session.scalar(text("show idle_in_transaction_session_timeout"))

    assert idle_max == "1min"


async def test_slow_block_is_aborted(database):
    async def sleep() -> None:
        async with database.writing(limit_ms=50) as session:
            await session.execute(text("select pg_sleep(60)"))

    with pytest.raises(StorageUnavailable, match="timed out"):
        await sleep()

    await database.ping()


async def test_excess_transactions_are_rejected(database_url):
    where = StorageSettings(
        redis_url="redis://unused", database_url=database_url, postgres_connections_max=2
    )

    async with open_database(where) as database, database.reading() as session:
        await session.execute(COUNT)
        with pytest.raises(StorageBusy):
            await database.ping()


async def test_missing_database_is_unavailable():
    where = StorageSettings(redis_url="redis://unused", database_url="postgresql:///?host=/nowhere")

    async with open_database(where) as database:
        with pytest.raises(StorageUnavailable, match="Postgres rejected"):
            await database.ping()


def test_driver_url_keeps_everything_but_scheme():
    url = "postgresql://me:p%40ss@/db?host=%2Ftmp%2Fa"

    assert driver_url(url) == "postgresql+psycopg://me:p%40ss@/db?host=%2Ftmp%2Fa"


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("postgres://host/db", {"host": "host", "dbname": "db"}),
        (
            "postgresql+psycopg://me:p%40s%20s+'\\@h:1/db",
            {"user": "me", "password": "p@s s+'\\", "host": "h", "port": "1", "dbname": "db"},
        ),
        (
            "postgresql://me@/db?host=/my%20data/%C3%BC%20%231%25/it's&port=5432",
            {"user": "me", "host": "/my data/ü #1%/it's", "port": "5432", "dbname": "db"},
        ),
        (
            "postgresql://me:p%40s@a:1,b,[::1]:3/db?target_session_attrs=read-write&sslmode=require",
            {
                "user": "me",
                "password": "p@s",
                "host": "a,b,::1",
                "port": "1,5432,3",
                "dbname": "db",
                "target_session_attrs": "read-write",
                "sslmode": "require",
            },
        ),
        (
            "postgresql://a,b",
            {"host": "a,b", "port": "5432,5432"},
        ),
        (
            "postgresql://me@/db?host=a:1&host=b:2&target_session_attrs=read-write",
            {
                "user": "me",
                "host": "a,b",
                "port": "1,2",
                "dbname": "db",
                "target_session_attrs": "read-write",
            },
        ),
    ],
)
def test_conninfo_matches_sqlalchemy_url(url, options):
    assert conninfo_to_dict(conninfo(url)) == options


@pytest.mark.parametrize(
    "spelling", ["{user}@{dead},{live}{path}", "{user}@{path}?host={dead},{live}"]
)
async def test_dead_host_of_several_is_passed_over(database_url, spelling):
    parts, options = urlsplit(database_url), conninfo_to_dict(conninfo(database_url))
    hosts = {"dead": quote("/nowhere", safe=""), "live": quote(str(options["host"]), safe="")}
    address = spelling.format(user=options["user"], path=parts.path, **hosts)
    settings = StorageSettings(redis_url="redis://unused", database_url=f"postgresql://{address}")
    listener = Listener(settings.database_url)

    async with open_database(settings) as database, running(listener):
        await database.ping()
        await listener.attempted()

        assert listener.listening


async def test_silent_host_of_several_delays_one_connection(database_url, short_folder):
    """The machine of a lost primary, the first host, answered nothing, and every call gave up before it tried the standby."""
    parts, options = urlsplit(database_url), conninfo_to_dict(conninfo(database_url))
    silent, live = (quote(str(host), safe="") for host in (short_folder, options["host"]))
    address = f"{options['user']}@{silent},{live}{parts.path}"
    settings = StorageSettings(redis_url="redis://unused", database_url=f"postgresql://{address}")
    attempts = []

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        attempts.append(await reader.read())
        writer.close()

    async with await asyncio.start_unix_server(say_nothing, short_folder / ".s.PGSQL.5432"):
        for _ in range(2):
            async with open_database(settings) as database:
                await database.ping()

    assert len(attempts) == 1


async def backend_pid(database: Database) -> int:
    async with database.reading() as session:
        return int(await session.scalar(text("select pg_backend_pid()")) or 0)


async def count(database: Database) -> int:
    async with database.reading() as session:
        return int(await session.scalar(COUNT) or 0)


async def lose_connection(session: AsyncSession, url: str) -> None:
    """Terminate this session's connection, as a restart of Postgres does."""
    pid = await session.scalar(text("select pg_backend_pid()"))
    with psycopg.connect(url, autocommit=True) as operator:
        operator.execute("select pg_terminate_backend(%s, 1000)", [pid])


async def test_connection_that_is_left_in_a_pipeline_is_not_used_again(database):
    """A write of several rows that was cancelled left it there: then every statement returned no rows."""
    async with database.reading() as session:
        (await driver_of(session)).pgconn.enter_pipeline_mode()

    assert await count(database) == 0


async def driver_of(session: AsyncSession) -> Any:
    raw = await (await session.connection()).get_raw_connection()
    return raw.driver_connection


async def test_silent_postgres_is_given_up_without_the_waits_of_the_driver(
    database_url, short_folder, monkeypatch
):
    """The driver waits five seconds for a cancellation, and five more for its effect."""
    monkeypatch.setattr("storage.postgres.database._REPLY_SECONDS", 0.2)
    monkeypatch.setattr("storage.postgres.database._CANCEL_SECONDS", 0.2)
    monkeypatch.setattr("storage.postgres.listener._REPLY_SECONDS", 0.2)
    monkeypatch.setattr("storage.postgres.listener._CHECK_SECONDS", 0.2)
    async with running_database_proxy(database_url, short_folder) as (url, faults):
        settings = StorageSettings(redis_url="redis://unused", database_url=url)
        async with open_database(settings) as database, running(Listener(url)) as listener:
            await database.ping()
            await eventually(lambda: _listens(listener), True)
            faults.swallow_answers = True

            async with asyncio.timeout(4):
                with pytest.raises(StorageUnavailable, match="timed out"):
                    await database.ping()
                await eventually(lambda: _listens(listener), False)

            faults.swallow_answers = False
            await database.ping()


async def test_known_silence_delays_one_call_and_not_the_others(
    database_url, short_folder, monkeypatch
):
    monkeypatch.setattr("storage.postgres.database._REPLY_SECONDS", 0.5)
    async with running_database_proxy(database_url, short_folder) as (url, faults):
        settings = StorageSettings(redis_url="redis://unused", database_url=url)
        async with open_database(settings) as database:
            database.is_away = lambda: True
            await database.ping()
            faults.swallow_answers = True
            with pytest.raises(StorageUnavailable, match="timed out"):
                await database.ping()

            async with asyncio.timeout(3):  # each would take half a second
                for _ in range(50):
                    with pytest.raises(StorageUnavailable):
                        await database.ping()
                    with pytest.raises(StorageUnavailable):
                        await add_row(database)

            faults.swallow_answers = False
            await eventually(lambda: answers(database), True)
            await asyncio.gather(*(database.ping() for _ in range(4)))


async def test_postgres_that_refuses_connections_is_asked_by_every_call(database_url, short_folder):
    async with running_database_proxy(database_url, short_folder) as (url, faults):
        settings = StorageSettings(redis_url="redis://unused", database_url=url)
        async with open_database(settings) as database:
            database.is_away = lambda: True
            faults.refuse = True
            for _ in range(2):
                with pytest.raises(StorageUnavailable):
                    await database.ping()

            faults.refuse = False
            await database.ping()


async def answers(database: Database) -> bool:
    try:
        await database.ping()
    except StorageUnavailable:
        return False
    return True


async def add_row(database: Database) -> None:
    async with database.writing() as session:
        await session.execute(ADD)


async def _listens(listener: Listener) -> bool:
    return listener.listening


async def test_connection_is_closed_when_its_setup_is_cancelled(database_url):
    """A caller that left while its connection was being set up left the connection open."""
    opened: asyncio.Queue[DriverConnection] = asyncio.Queue()

    async def hang(connection: DriverConnection, _: bytes) -> None:
        opened.put_nowait(connection)
        await asyncio.Event().wait()

    with mock.patch.object(DriverConnection, "execute", hang):
        connecting = asyncio.create_task(DriverConnection.connect(conninfo(database_url)))
        connection = await opened.get()
        connecting.cancel()
        await asyncio.gather(connecting, return_exceptions=True)

    assert connection.closed
