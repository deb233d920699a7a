"""Processes of one deployment that share its credentials, and a manual clock."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import psycopg
import pytest

from storage.access.credentials import Credentials
from storage.access.secret_box import SecretBox, new_key
from storage.access.sessions import NewSession
from storage.domain.access.credentials import CredentialRequest, Rights
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR, Policy, Principal, Role
from storage.domain.clock import ManualClock
from storage.postgres.database import open_database
from storage.postgres.listener import Listener, running
from storage.settings import StorageSettings
from tests.conditions import PATIENCE_S
from tests.databases import fresh_database

ADMIN = LOCAL_ADMINISTRATOR
TENANT_ADMIN = Principal("ada", policy=Policy(Rights(roles=(Role.ADMIN,)).expanded))
PRODUCER = Rights(roles=(Role.PRODUCER,))
CREATED = CredentialRequest(name="orders-service", rights=PRODUCER)
OLD_KEY, NEW_KEY = new_key(), new_key()
OpenProcess = Callable[..., AbstractAsyncContextManager[Credentials]]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="module")
def module_database_url(postgres_server_url: str, migrated_template: str) -> Iterator[str]:
    """One database for all of these tests: creating one takes longer than most of them."""
    with fresh_database(postgres_server_url, migrated_template) as url:
        yield url


@pytest.fixture
def database_url(module_database_url: str) -> str:
    """The URL of the shared database, emptied."""
    with psycopg.connect(module_database_url, autocommit=True) as connection:
        connection.execute("TRUNCATE credentials, tickets, sessions")
        connection.execute("DELETE FROM namespaces WHERE name <> 'default'")
    return module_database_url


@pytest.fixture
def process(database_url: str, clock: ManualClock) -> OpenProcess:
    """Open the engine as one process of the deployment does."""
    where = StorageSettings(redis_url="redis://unused", database_url=database_url)

    @asynccontextmanager
    async def opened(*keys: str) -> AsyncIterator[Credentials]:
        listener = Listener(where.database_url)
        async with open_database(where) as database:
            credentials = Credentials(database, listener, clock, SecretBox(keys))
            async with running(listener):
                await listener.attempted()
                try:
                    yield credentials
                finally:
                    await credentials.close()

    return opened


@pytest.fixture
async def credentials(process: OpenProcess) -> AsyncIterator[Credentials]:
    async with process(OLD_KEY) as credentials:
        yield credentials


@pytest.fixture
async def other(process: OpenProcess) -> AsyncIterator[Credentials]:
    """Another process of the same deployment."""
    async with process(OLD_KEY) as credentials:
        yield credentials


class ChangeNotifications:
    """The change notifications that a process received."""

    def __init__(self, credentials: Credentials) -> None:
        self._told: asyncio.Queue[str | None] = asyncio.Queue()
        credentials.on_change(self._told.put_nowait)

    async def next(self) -> str | None:
        return await asyncio.wait_for(self._told.get(), PATIENCE_S)


async def ticket_for(credentials: Credentials, by: Principal) -> tuple[str, int]:
    """Create a ticket; returns it and its expiry."""
    made = await credentials.make_ticket(by)
    assert made is not None
    return made


async def session_of(credentials: Credentials, word: str) -> NewSession:
    """Log in with an API key."""
    made = await credentials.log_in(word)
    assert made is not None
    return made


async def use(credentials: Credentials, credential_id: str) -> None:
    """Record one use of a credential."""
    credentials.used(credential_id)
    await credentials.flush_uses()


async def make_namespace(database_url: str, name: str) -> None:
    """Create a second namespace."""
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute(
            "INSERT INTO namespaces (name, account_id) VALUES (%s, '123456789012')", [name]
        )


async def stored_credentials(database_url: str) -> bytes:
    """Read all that Postgres stores about credentials."""
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        rows = await (await connection.execute("SELECT * FROM credentials")).fetchall()
    return b"".join(
        value if isinstance(value, bytes) else str(value).encode() for row in rows for value in row
    )
