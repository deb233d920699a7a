"""A stream of four shards, a group that reads it, and a manual clock."""

import pytest

from storage.bootstrap import open_storage
from storage.domain.groups.group import GroupSpec
from storage.domain.streams.stream import StreamSpec
from storage.settings import StorageSettings
from tests.integration.groups.group_reads import CLICKS, NEVER_AWAY, READERS


@pytest.fixture
def settings(redis_url, database_url):
    return StorageSettings(redis_url=redis_url, database_url=database_url)


@pytest.fixture
async def storage(settings, clock):
    async with open_storage(settings, clock=clock, limits=NEVER_AWAY) as storage:
        await storage.catalog.put_stream(CLICKS, StreamSpec(shards=4))
        await storage.groups.put(READERS, GroupSpec(stream="clicks"))
        yield storage


@pytest.fixture
def groups(storage):
    return storage.groups
