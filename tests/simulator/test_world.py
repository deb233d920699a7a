"""Processes of a simulated deployment: what a kill ends, and what transactions see of each other."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from random import Random

import pytest
from redis.exceptions import ConnectionError
from sqlalchemy import text

from storage.domain.errors import OutcomeUnknown, StorageUnavailable
from tests.databases import fresh_database
from tests.simulator.database import Postgres, SimulatedDatabase
from tests.simulator.hot_store.connection import SimulatedConnection, SimulatedNodes
from tests.simulator.hot_store.server import Session, SimulatedServer
from tests.simulator.virtual_loop import VirtualLoop

INSERT = text("INSERT INTO simulated.numbers VALUES (1)")
COUNT = text("SELECT count(*) FROM simulated.numbers")


@pytest.fixture(scope="module")
def postgres(postgres_server_url: str, migrated_template: str) -> Iterator[Postgres]:
    with fresh_database(postgres_server_url, migrated_template) as url:
        opened = Postgres(url)
        opened.run("CREATE TABLE simulated.numbers (number int)")
        yield opened
        opened.close()


@pytest.fixture
def databases(postgres: Postgres) -> list[SimulatedDatabase]:
    postgres.run("TRUNCATE simulated.numbers")
    chance = Random(0)
    return [SimulatedDatabase(postgres, chance, lambda: False) for _ in range(2)]


def simulate(test: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await test()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(run())


async def connect(nodes: SimulatedNodes) -> SimulatedConnection:
    connection: SimulatedConnection = nodes.pool("").make_connection()
    await connection.connect()
    return connection


async def increment(connection: SimulatedConnection) -> None:
    await connection.send_command("HINCRBY", "hash", "field", 1)


def value(server: SimulatedServer) -> object:
    return server.keyspace.run(b"HGET", [b"hash", b"field"])


def test_sent_command_is_run_when_its_client_is_killed():
    async def test() -> None:
        server = SimulatedServer(Random(0))
        nodes = SimulatedNodes(server)
        connection = await connect(nodes)

        await increment(connection)
        nodes.cut_off()
        assert value(server) is None
        await asyncio.sleep(1.0)

        assert value(server) == b"1"
        with pytest.raises(ConnectionError):
            await connection.connect()

    simulate(test)


@pytest.mark.parametrize("ending", [Session.end, lambda session: session._server.crash()])
def test_sent_command_is_lost_when_its_way_is_cut(ending):
    async def test() -> None:
        server = SimulatedServer(Random(0))
        connection = await connect(SimulatedNodes(server))

        await increment(connection)
        [session] = server.sessions
        ending(session)
        server.start()
        await asyncio.sleep(1.0)

        assert value(server) is None
        with pytest.raises(ConnectionError):
            await connection.read_response()

    simulate(test)


def test_reply_is_lost_when_the_connection_breaks():
    async def test() -> None:
        server = SimulatedServer(Random(0))
        connection = await connect(SimulatedNodes(server))

        await increment(connection)
        [session] = server.sessions
        session.lose_client()
        await asyncio.sleep(1.0)

        assert value(server) == b"1"
        with pytest.raises(ConnectionError):
            await connection.read_response()

    simulate(test)


def test_killed_process_commits_nothing(databases):
    killed, other = databases

    async def insert_and_die() -> None:
        async with killed.writing() as session:
            await session.execute(INSERT)
            killed.cut_off()

    async def test() -> None:
        with pytest.raises(OutcomeUnknown):
            await insert_and_die()
        with pytest.raises(StorageUnavailable):
            await killed.ping()
        async with other.reading() as session:
            assert await session.scalar(COUNT) == 0

    simulate(test)


@pytest.mark.parametrize(("isolation", "expected"), [("READ COMMITTED", 1), ("REPEATABLE READ", 0)])
def test_transaction_sees_others_by_its_isolation_level(databases, isolation, expected):
    reader, writer = databases

    async def insert() -> None:
        async with writer.writing() as session:
            await session.execute(INSERT)

    async def test() -> None:
        async with reader.reading() as session:
            await session.connection(execution_options={"isolation_level": isolation})
            assert await session.scalar(COUNT) == 0
            await insert()
            assert await session.scalar(COUNT) == expected

    simulate(test)


def test_statement_waits_for_a_lock_of_another_process(databases):
    first, second = databases
    lock = text("SELECT pg_advisory_xact_lock(1)")
    acquired: list[str] = []

    async def acquire(name: str, database: SimulatedDatabase, hold_s: float) -> None:
        async with database.writing() as session:
            await session.execute(lock)
            acquired.append(name)
            await asyncio.sleep(hold_s)
            acquired.append(f"{name} ends")

    async def test() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(acquire("first", first, 1.0))
            await asyncio.sleep(0.1)
            tasks.create_task(acquire("second", second, 0.0))

    simulate(test)

    assert acquired == ["first", "first ends", "second", "second ends"]


def test_statements_of_transactions_interleave(databases):
    order: list[int] = []

    async def read_often(number: int) -> None:
        async with databases[number].reading() as session:
            for _ in range(5):
                await session.scalar(COUNT)
                order.append(number)

    async def test() -> None:
        await asyncio.gather(read_often(0), read_often(1))

    simulate(test)

    assert order not in ([0] * 5 + [1] * 5, [1] * 5 + [0] * 5)
