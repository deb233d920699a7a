"""Catalogs of several processes of one deployment."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from storage.catalog.catalog import Catalog, open_catalog
from storage.domain.clock import ManualClock
from storage.postgres.database import open_database
from storage.postgres.listener import Listener
from storage.postgres.repositories.offset_reservations import Reservations
from storage.settings import StorageSettings
from tests.integration.catalog.definitions import OpenCatalog, Tombstones


@pytest.fixture
def tombstones() -> Tombstones:
    return Tombstones()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def process(database_url: str, clock: ManualClock, tombstones: Tombstones) -> OpenCatalog:
    """Open a catalog as one process of the deployment does."""
    where = StorageSettings(redis_url="redis://unused", database_url=database_url)

    @asynccontextmanager
    async def opened() -> AsyncIterator[Catalog]:
        async with (
            open_database(where) as database,
            open_catalog(
                database, Listener(where.database_url), clock, tombstones.tombstone
            ) as catalog,
        ):
            yield catalog

    return opened


@pytest.fixture
async def catalog(process: OpenCatalog) -> AsyncIterator[Catalog]:
    async with process() as catalog:
        yield catalog


@pytest.fixture
async def other(process: OpenCatalog) -> AsyncIterator[Catalog]:
    """Catalog of the same deployment, as in another process."""
    async with process() as catalog:
        yield catalog


@pytest.fixture
async def reservations(database_url: str) -> AsyncIterator[Reservations]:
    where = StorageSettings(redis_url="redis://unused", database_url=database_url)
    async with open_database(where) as database:
        yield Reservations(database)
