"""A service that requires credentials, for each test."""

import pytest

from tests.guarded import guarding

SOON_S = 10.0


@pytest.fixture
async def guarded(redis_url, database_url):
    async with guarding(redis_url, database_url) as guarded:
        yield guarded
