"""Queues and webhooks of routes to URLs: transactions, and their removal by maintenance."""

from collections.abc import Awaitable, Callable

import pytest

from consumers.maintenance.tasks.route_endpoints import delete_unused_endpoints
from storage.access.secret_box import new_key
from storage.bootstrap import Storage, open_storage
from storage.domain.errors import (
    QueueNotFound,
    StorageUnavailable,
    ValidationFailed,
    WebhookNotFound,
)
from storage.domain.names import QueueName, RouteName
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.topics.route import RouteSpec, RouteTarget
from storage.settings import StorageSettings
from tests.integration.topics.routing import (
    BILLING,
    ORDERS,
    RunningRouter,
    is_empty,
    publish,
    receive_all,
    target_of,
    until,
)

pytestmark = pytest.mark.one_store

CRM = RouteName(ORDERS, "crm")
URL = "https://shop.example/hooks"


@pytest.fixture
async def storage(redis_url: str, database_url: str, clock):
    """Engines that keep secrets."""
    settings = StorageSettings(
        redis_url=redis_url, database_url=database_url, secret_keys=(new_key(),)
    )
    async with open_storage(settings, clock=clock) as storage:
        yield storage


async def put_url(storage: Storage, url: str = URL, **settings) -> None:
    """Put the route to a URL."""
    target = RouteTarget(url=url, **settings)
    await storage.topic_routes.put(CRM, RouteSpec(target=target))


async def exists(storage: Storage) -> tuple[bool, bool]:
    """Return whether the route's queue and its webhook exist."""
    return (
        await _exists(storage.catalog.fresh_queue, CRM.queue, QueueNotFound),
        await _exists(storage.webhooks.get, CRM.webhook, WebhookNotFound),
    )


async def _exists(
    read: Callable[..., Awaitable[object]], name: object, missing: type[Exception]
) -> bool:
    try:
        await read(name)
    except missing:
        return False
    return True


@pytest.mark.parametrize("step", ["webhook", "fence", "row"])
async def test_failed_put_leaves_no_endpoint(topics, monkeypatch, step):
    async def fail(*_: object, **__: object) -> None:
        raise StorageUnavailable

    routes = topics.topic_routes
    place = {
        "webhook": (topics.webhooks, "put_of_route"),
        "fence": (routes._fences, "advance"),
        "row": (routes, "_store"),
    }[step]
    with monkeypatch.context() as patch:
        patch.setattr(*place, fail)
        with pytest.raises(StorageUnavailable):
            await put_url(topics)

    assert await exists(topics) == (False, False)
    await put_url(topics)
    assert await exists(topics) == (True, True)


async def test_failed_delete_leaves_whole_endpoint(topics, monkeypatch):
    async def fail(*_: object, **__: object) -> None:
        raise StorageUnavailable

    await put_url(topics)
    with monkeypatch.context() as patch:
        patch.setattr(topics.route_endpoints, "delete", fail)
        with pytest.raises(StorageUnavailable):
            await topics.topic_routes.delete(CRM)

    assert await exists(topics) == (True, True)
    await topics.topic_routes.delete(CRM)
    assert await exists(topics) == (False, False)


async def test_egress_rule_refuses_url_of_route(topics):
    with pytest.raises(ValidationFailed) as refused:
        await put_url(topics, "https://127.0.0.1/")

    assert [fault.pointer for fault in refused.value.faults] == ["/target/url"]
    assert await exists(topics) == (False, False)


async def test_copies_wait_in_queue_of_route(topics):
    await put_url(topics)

    async with RunningRouter(topics):
        await publish(topics, "a", "b")
        assert await receive_all(topics, CRM.queue, 2) == [b"a", b"b"]


async def test_endpoint_is_deleted_once_empty_after_change_of_target(topics):
    await put_url(topics)
    async with RunningRouter(topics):
        await publish(topics, "a")
        await topics.topic_routes.put(CRM, RouteSpec(target=target_of(BILLING)))
        [message] = await topics.queues.receive(CRM.queue, wait_ms=20_000)

        async def is_forgotten() -> bool:
            stream = await topics.topics.get(ORDERS)
            return not await topics.topic_routing.routes.ended(ORDERS, stream.stream_id)

        await until(is_forgotten)
        assert await delete_unused_endpoints.work(topics) == 0

        ack = Settlement(message.receipt_handle, SettleAction.ACK)
        await topics.queues.settle(CRM.queue, [ack])
        assert await delete_unused_endpoints.work(topics) == 1

    assert await exists(topics) == (False, False)


async def test_endpoint_in_use_is_not_deleted(topics):
    await put_url(topics)
    assert await delete_unused_endpoints.work(topics) == 0

    await topics.topic_routes.put(
        CRM, RouteSpec(target=target_of(BILLING))
    )  # no router: not forgotten
    assert await delete_unused_endpoints.work(topics) == 0

    assert await exists(topics) == (True, True)


async def test_endpoint_is_used_again_when_route_returns_to_url(topics):
    await put_url(topics)
    log_id = (await topics.catalog.fresh_queue(CRM.queue)).log_id
    await topics.topic_routes.put(CRM, RouteSpec(target=target_of(BILLING)))

    await put_url(topics, "https://other.example/")

    assert (await topics.catalog.fresh_queue(CRM.queue)).log_id == log_id
    assert (await topics.webhooks.get(CRM.webhook)).spec.url == "https://other.example/"


async def test_delete_ends_former_revision_with_url(topics):
    await put_url(topics)
    await publish(topics, "a")
    await topics.topic_routes.put(CRM, RouteSpec(target=target_of(BILLING)))
    await publish(topics, "b")

    await topics.topic_routes.delete(CRM)
    await put_url(topics)
    await publish(topics, "c")

    async with RunningRouter(topics):
        assert await receive_all(topics, CRM.queue, 1) == [b"c"]
        assert await is_empty(topics, CRM.queue)
    assert await is_empty(topics, BILLING)


async def test_topic_takes_endpoints_of_its_routes_alone(topics):
    await put_url(topics)
    other = QueueName(BILLING.name)

    await topics.topics.delete(ORDERS)

    assert await exists(topics) == (False, False)
    await topics.queues.send(other, [NewMessage(b"x")])


async def test_values_of_headers_are_not_in_route(topics):
    await put_url(topics, headers=(("authorization", "opensesame"),))

    route = await topics.topic_routes.get(CRM)
    opened = await topics.webhooks.opened(CRM.webhook)

    assert route.spec.target.headers == (("authorization", ""),)
    assert opened.webhook.spec.headers == (("authorization", "opensesame"),)
