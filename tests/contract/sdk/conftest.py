"""Clients of the service that the contract tests of the SDK share."""

from collections.abc import AsyncIterator, Iterator

import pytest

from millstream_client import AsyncMillstream, Millstream, Queue, Stream


@pytest.fixture(scope="session")
def millstream(service_url: str) -> Iterator[Millstream]:
    """A synchronous client."""
    with Millstream(service_url) as client:
        yield client


@pytest.fixture
async def asynchronous(service_url: str) -> AsyncIterator[AsyncMillstream]:
    """An asynchronous client."""
    async with AsyncMillstream(service_url) as client:
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
