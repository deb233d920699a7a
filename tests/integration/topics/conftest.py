"""A topic, two queues and a stream, and routers that tests start and stop."""

from collections.abc import Awaitable, Callable

import pytest

from storage.bootstrap import Storage
from storage.domain.names import RouteName
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec
from storage.domain.topics.route import RouteSpec, TopicRoute
from tests.integration.topics.routing import (
    AUDIT,
    BILLING,
    CRM,
    ORDERS,
    RunningRouter,
    shorten_periods,
    target_of,
)

PutRoute = Callable[..., Awaitable[TopicRoute]]


@pytest.fixture(autouse=True)
def _short_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_periods(monkeypatch)


@pytest.fixture
async def topics(storage: Storage) -> Storage:
    """The storage, with the topic and its targets."""
    await storage.topics.put(ORDERS, StreamSpec())
    await storage.catalog.put_queue(BILLING, QueueSpec())
    await storage.catalog.put_queue(CRM, QueueSpec())
    await storage.catalog.put_stream(AUDIT, StreamSpec())
    return storage


@pytest.fixture
def put_route(topics: Storage) -> PutRoute:
    """Put a route to a queue or a stream."""

    async def put(route: str, target, match=None, **fields) -> TopicRoute:
        spec = RouteSpec(target=target_of(target), match=match, **fields)
        put = await topics.topic_routes.put(RouteName(ORDERS, route), spec)
        return put.definition

    return put


@pytest.fixture
async def router(topics: Storage):
    """Route the topics of the storage."""
    async with RunningRouter(topics) as running:
        yield running
