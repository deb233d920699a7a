"""Topics of the dashboard's tests: their routes, messages and reports."""

from typing import Any

from playwright.async_api import Page

from storage.bootstrap import Storage
from storage.domain.names import QueueName, RouteName, TopicName
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import Stream, StreamSpec
from storage.domain.topics.route import RouteSpec, RouteTarget, TopicRoute
from storage.domain.topics.topic import NewPublication, Published

LARGE = {"subject": "order.*", "filter": {"body": {"total": [{"numeric": [">", 100]}]}}}


async def a_topic(storage: Storage, name: str, **routes: Any) -> Stream:
    """Create a topic with routes by name, each a match, to the queue `<topic>-<route>`."""
    topic = (await storage.topics.put(TopicName(name), StreamSpec())).definition
    for route, match in routes.items():
        await storage.catalog.put_queue(QueueName(f"{name}-{route}"), QueueSpec())
        await a_route(storage, name, route, match, RouteTarget(queue=f"{name}-{route}"))
    return topic


async def a_route(
    storage: Storage, topic: str, route: str, match: Any, target: RouteTarget
) -> TopicRoute:
    spec = RouteSpec(target=target, match=match)
    return (await storage.topic_routes.put(RouteName(TopicName(topic), route), spec)).definition


async def publish(storage: Storage, topic: str, subject: str, body: bytes = b"{}") -> Published:
    message = NewPublication(body, subject, "customer-7", (("region", "", b"eu"),))
    [published] = await storage.topics.publish(TopicName(topic), [message])
    assert isinstance(published, Published)
    return published


async def states_of(storage: Storage, topic: str, published: Published) -> dict[str, str]:
    routes = await storage.topic_reports.routes_of_message(TopicName(topic), published.id)
    return {one.route.name.route: one.state.value for one in routes if one.route}


async def failure_of(storage: Storage, topic: str, route: str) -> bool:
    return bool((await storage.topic_routes.get(RouteName(TopicName(topic), route))).failure)


def verdict(page: Page, route: str):
    """Return the row of a route in a report."""
    link = page.get_by_role("link", name=route, exact=True)
    return page.locator(".verdicts > li").filter(has=link)
