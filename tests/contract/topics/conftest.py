"""A router of the service's topics, and a topic with two queues."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from consumers.routing.router import Router
from storage.bootstrap import open_storage
from storage.concurrency.tasks import end
from storage.settings import StorageSettings
from tests.integration.topics.routing import shorten_periods


@pytest.fixture(autouse=True)
def _short_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_periods(monkeypatch)


@pytest.fixture
async def api(service_url: str) -> AsyncIterator[httpx.AsyncClient]:
    """An asynchronous client of the service."""
    async with httpx.AsyncClient(base_url=service_url, timeout=30) as client:
        yield client


@pytest.fixture
async def router(service: tuple[str, StorageSettings]) -> AsyncIterator[None]:
    """Route the topics of the service."""
    async with open_storage(service[1]) as storage:
        task = asyncio.create_task(Router(storage).run())
        try:
            yield
        finally:
            await end(task)


@pytest.fixture
async def topic(api: httpx.AsyncClient, name: str) -> str:
    """Create a topic and the queues `<topic>-a` and `<topic>-b`; return its path."""
    for path in (f"topics/{name}", f"queues/{name}-a", f"queues/{name}-b"):
        (await api.put(f"/v1/{path}", json={})).raise_for_status()
    return f"/v1/topics/{name}"
