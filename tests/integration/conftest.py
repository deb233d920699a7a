"""The engines over real stores, with a manual clock."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from storage.bootstrap import open_storage
from storage.domain.clock import ManualClock
from storage.settings import StorageSettings
from tests.databases import execute


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def engines(redis_url, database_url, clock):
    """Open storage whose scripts run on the test's clock."""
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with open_storage(settings, clock=clock) as storage:
        yield storage


@pytest.fixture
def reader(engines):
    return engines.record_reader


@pytest.fixture
def settings(redis_url, database_url, tmp_path) -> StorageSettings:
    """The stores, and an archive in a temporary directory."""
    return StorageSettings(
        redis_url=redis_url, database_url=database_url, archive_url=f"file://{tmp_path}/archive"
    )


@pytest.fixture
async def storage(settings):
    """Open storage on the stores' own clock, with an archive."""
    async with open_storage(settings) as storage:
        yield storage


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A temporary folder whose path is short enough for a socket."""
    with TemporaryDirectory(prefix="ms-") as folder:
        yield Path(folder)


@pytest.fixture
def lonely_url(database_url: str) -> Iterator[str]:
    """The database, for a role whose connections can be cut."""
    execute(database_url, "CREATE ROLE lonely LOGIN SUPERUSER")
    yield database_url.replace("postgres@", "lonely@", 1)
    execute(database_url, "DROP ROLE lonely")
