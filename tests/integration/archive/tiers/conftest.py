"""A stream whose records leave the hot store once they are archived."""

import pytest

from storage.bootstrap import open_storage
from tests.integration.archive.tiers.tier_reads import NEVER_AWAY, NOTHING_HOT
from tests.tiered_stream import CLICKS


@pytest.fixture
async def engines(settings, clock):
    async with open_storage(settings, clock=clock, limits=NEVER_AWAY) as storage:
        await storage.catalog.put_stream(CLICKS, NOTHING_HOT)
        yield storage
