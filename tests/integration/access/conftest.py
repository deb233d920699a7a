"""A service that requires credentials, for each test."""

import pytest

from tests.secured_service import running_secured_service


@pytest.fixture
async def secured_service(redis_url, database_url):
    async with running_secured_service(redis_url, database_url) as secured_service:
        yield secured_service
