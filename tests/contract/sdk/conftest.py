"""Clients of the service that the contract tests of the SDK share."""

import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest

from millstream_client import AsyncMillstream, Millstream, Queue, Stream
from millstream_client.testing import MemoryService

BOTH = pytest.mark.parametrize("backend", ["service", "memory"], indirect=True, scope="module")
"""Run a module's tests against the service, and against the in-memory one, which must not differ."""


@dataclass
class Service:
    """The running service, with the methods of the in-memory one."""

    url: str

    def client(self) -> Millstream:
        return Millstream(self.url)

    def async_client(self) -> AsyncMillstream:
        return AsyncMillstream(self.url)

    def advance(self, seconds: float) -> None:
        """Wait: the service has the time of this machine."""
        time.sleep(seconds)


Backend = Service | MemoryService


@pytest.fixture(scope="module")
def backend(request: pytest.FixtureRequest) -> Backend:
    """The service; in modules of both backends also the in-memory one."""
    if getattr(request, "param", "service") == "memory":
        return MemoryService()
    return Service(request.getfixturevalue("service_url"))


@pytest.fixture(scope="module")
def millstream(backend: Backend) -> Iterator[Millstream]:
    """A synchronous client."""
    with backend.client() as client:
        yield client


@pytest.fixture
async def asynchronous(backend: Backend) -> AsyncIterator[AsyncMillstream]:
    """An asynchronous client."""
    async with backend.async_client() as client:
        yield client


@pytest.fixture
def orders(millstream: Millstream, name: str) -> Queue:
    """A new queue."""
    queue = millstream.queue(name)
    queue.create()
    return queue


@pytest.fixture
def clicks(millstream: Millstream, name: str) -> Stream:
    """A new stream of two shards."""
    stream = millstream.stream(f"{name}-clicks")
    stream.create(shards=2)
    return stream
