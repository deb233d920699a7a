"""Routes that start in the past: each earlier message that matches once, before the later ones."""

import asyncio
from collections import defaultdict

import pytest

from consumers.feeds.feed import Feeds
from consumers.routing.topic_router import RoutingContext, TopicRouter
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.errors import TooManyRoutes, ValidationFailed
from storage.domain.names import RouteName
from storage.domain.streams.start_at import StartAt
from storage.domain.streams.stream import RING_SIZE
from storage.domain.topics.report import MessageRouteState, RouteState
from storage.domain.topics.route import UNMATCHED, RouteMode, RouteSpec, RouteTarget
from storage.domain.topics.targets.spread import SpreadBy, SpreadMember
from storage.domain.topics.topic import NewPublication
from tests.integration.topics.routing import (
    AUDIT,
    BILLING,
    CRM,
    ORDERS,
    RunningRouter,
    is_empty,
    publish,
    read_all,
    receive_all,
    until,
)

pytestmark = pytest.mark.one_store

EARLY = [f"n.{nth}" for nth in range(150)]
LATE = [f"n.{nth}" for nth in range(150, 200)]
LATE_ROUTE = RouteName(ORDERS, "late")
SPREAD = RouteName(ORDERS, "spread")


def bodies(subjects: list[str]) -> list[bytes]:
    return [one.encode() for one in subjects]


async def wait_until_done(storage) -> None:
    async def is_done() -> bool:
        return bool((await storage.topic_routes.get(LATE_ROUTE)).history_done)

    await until(is_done)


async def test_new_route_takes_earlier_messages(topics, put_route, router):
    await put_route("audit", AUDIT)
    await publish(topics, *EARLY)
    await publish(topics, "other")

    await put_route("late", BILLING, {"subject": "n.*"}, start=StartAt.EARLIEST)
    await publish(topics, *LATE)

    assert await receive_all(topics, BILLING, 200) == bodies(EARLY + LATE)
    assert await is_empty(topics, BILLING)


async def test_new_route_takes_messages_since_time(topics, put_route, router):
    await publish(topics, *EARLY)
    await asyncio.sleep(0.002)  # arrival times have milliseconds
    [first] = await publish(topics, "n.150")
    since_ms = (await topics.topic_reports.message(ORDERS, first.id)).arrival_ms
    await publish(topics, *LATE[1:])

    await put_route("late", BILLING, None, start=StartAt.TIME, start_time_ms=since_ms)

    assert await receive_all(topics, BILLING, 50) == bodies(LATE)
    assert await is_empty(topics, BILLING)


async def test_history_passes_closed_shards_in_order(topics, put_route, router):
    keys = [f"k{nth}" for nth in range(8)]

    async def publish_each(numbers: range) -> None:
        for number in numbers:
            messages = [NewPublication(f"{key}:{number}".encode(), key=key) for key in keys]
            await topics.topics.publish(ORDERS, messages)

    await publish_each(range(10))
    await topics.streams.resharder.split(ORDERS.stream, 0, RING_SIZE // 2)
    await publish_each(range(10, 20))

    await put_route("late", AUDIT, start=StartAt.EARLIEST)
    await publish_each(range(20, 25))

    of_key = defaultdict(list)
    for body in await read_all(topics, AUDIT, 25 * len(keys)):
        key, _, number = body.decode().partition(":")
        of_key[key].append(int(number))
    assert of_key == {key: list(range(25)) for key in keys}


async def test_history_is_complete_when_route_is_put_during_reshard(topics, put_route, router):
    async def publish_some(first: int) -> None:
        for number in range(first, first + 40):
            await publish(topics, f"n.{number}", key=f"k{number}")

    async def put_late() -> None:
        await asyncio.sleep(0.01)
        await put_route("late", AUDIT, start=StartAt.EARLIEST)

    await asyncio.gather(
        publish_some(0),
        publish_some(100),
        topics.streams.resharder.split(ORDERS.stream, 0, RING_SIZE // 2),
        put_late(),
    )

    expected = [f"n.{number}" for first in (0, 100) for number in range(first, first + 40)]
    assert sorted(await read_all(topics, AUDIT, 80)) == sorted(bodies(expected))


async def test_history_is_delivered_once_across_takeovers(topics, put_route):
    await publish(topics, *EARLY)
    await put_route("late", AUDIT, start=StartAt.EARLIEST)
    for _ in range(5):
        router = asyncio.create_task(
            TopicRouter(
                RoutingContext(topics, Feeds(topics.record_reader, {})),
                await topics.topics.fresh(ORDERS),
                1,
            ).run()
        )
        await asyncio.sleep(0.03)  # wherever it is then
        await end(router)
    async with RunningRouter(topics):
        await publish(topics, *LATE)
        assert await read_all(topics, AUDIT, 200) == bodies(EARLY + LATE)
        await wait_until_done(topics)


async def test_history_is_read_once(topics, put_route):
    await publish(topics, *EARLY)
    async with RunningRouter(topics):
        await put_route("late", AUDIT, start=StartAt.EARLIEST)
        await wait_until_done(topics)
    delivered = (await topics.topic_routes.get(LATE_ROUTE)).delivered
    async with RunningRouter(topics):
        await publish(topics, *LATE)
        assert await read_all(topics, AUDIT, 200) == bodies(EARLY + LATE)

        async def has_counted() -> bool:
            return bool((await topics.topic_routes.get(LATE_ROUTE)).delivered == delivered + 50)

        await until(has_counted)
    assert (await topics.topic_routes.get(LATE_ROUTE)).delivered == 200


async def test_changed_route_still_delivers_its_history(topics, put_route):
    await publish(topics, *EARLY)
    start = {"start": StartAt.EARLIEST}
    await put_route("late", BILLING, {"subject": "n.*"}, **start)
    await put_route("late", BILLING, {"subject": "m.*"}, **start)
    await publish(topics, "n.999", "m.1")
    async with RunningRouter(topics):
        received = await receive_all(topics, BILLING, 151)
        assert sorted(received) == sorted([*bodies(EARLY), b"m.1"])
        assert await is_empty(topics, BILLING)


async def test_paused_history_waits(topics, put_route, router):
    await publish(topics, *EARLY)
    await put_route("late", BILLING, start=StartAt.EARLIEST, paused=True)
    await publish(topics, *LATE)
    assert await is_empty(topics, BILLING)

    await topics.topic_routes.pause(LATE_ROUTE, paused=False)

    assert await receive_all(topics, BILLING, 200) == bodies(EARLY + LATE)


async def test_deleted_route_delivers_no_history(topics, put_route):
    await publish(topics, *EARLY)
    await put_route("late", BILLING, start=StartAt.EARLIEST)
    await topics.topic_routes.delete(LATE_ROUTE)
    await put_route("crm", CRM)
    async with RunningRouter(topics):
        await publish(topics, "m.1")
        assert await receive_all(topics, CRM, 1) == [b"m.1"]
        assert await is_empty(topics, BILLING)


async def test_history_of_unmatched_takes_what_no_route_took(topics, put_route, router):
    await put_route("crm", CRM, {"subject": "order.*"})
    await publish(topics, "order.created", "fax", "order.paid", "telex")

    await put_route("late", BILLING, UNMATCHED, start=StartAt.EARLIEST)

    assert await receive_all(topics, BILLING, 2) == [b"fax", b"telex"]
    assert await is_empty(topics, BILLING)


async def test_history_of_shadow_is_counted(topics, put_route, router):
    await publish(topics, *EARLY, "other")
    await put_route(
        "late", BILLING, {"subject": "n.*"}, start=StartAt.EARLIEST, mode=RouteMode.SHADOW
    )
    await wait_until_done(topics)
    route = await topics.topic_routes.get(LATE_ROUTE)
    assert (route.shadowed, route.delivered) == (150, 0)
    assert await is_empty(topics, BILLING)


async def test_reports_include_history(topics, put_route):
    await put_route("crm", CRM, {"subject": "n.1"})
    published = await publish(topics, "n.1", "other")
    await put_route("late", BILLING, {"subject": "n.*"}, start=StartAt.EARLIEST)

    async def states(message) -> dict[str, MessageRouteState]:
        routes = await topics.topic_reports.routes_of_message(ORDERS, message.id)
        return {one.route.name.route: one.state for one in routes if one.route}

    waiting, finished = MessageRouteState.WAITING, MessageRouteState.FINISHED
    assert await states(published[0]) == {"crm": waiting, "late": waiting}
    assert await states(published[1]) == {}
    assert (await topics.topic_reports.progress(LATE_ROUTE)).state is RouteState.HISTORY
    async with RunningRouter(topics):
        await wait_until_done(topics)

        async def is_finished() -> bool:
            return await states(published[0]) == {"crm": finished, "late": finished}

        await until(is_finished)
    assert (await topics.topic_reports.progress(LATE_ROUTE)).state is RouteState.ACTIVE


@pytest.mark.parametrize(
    "start",
    [
        {},
        {"start": StartAt.EARLIEST},
        {"start": StartAt.TIME, "start_time_ms": 1},
    ],
    ids=str,
)
async def test_start_is_immutable(topics, put_route, start):
    before = {"start": StartAt.TIME, "start_time_ms": 0}
    await put_route("late", BILLING, **before)
    with pytest.raises(ValidationFailed) as refused:
        await put_route("late", BILLING, {"subject": "a"}, **start)
    assert {fault.code for fault in refused.value.faults} == {"immutable"}
    assert (await put_route("late", BILLING, {"subject": "a"}, **before)).history is None


async def test_histories_of_topic_are_limited(topics, put_route):
    for nth in range(limits.ROUTE_HISTORY_READERS_MAX):
        await put_route(f"late-{nth}", BILLING, start=StartAt.EARLIEST)
    await put_route("late-0", BILLING, {"subject": "a"}, start=StartAt.EARLIEST)
    with pytest.raises(TooManyRoutes):
        await put_route("late", BILLING, start=StartAt.EARLIEST)
    await put_route("late", BILLING)


async def test_history_limit_counts_members_of_spread(topics, put_route):
    members = [SpreadMember(queue=f"w{nth}") for nth in range(limits.SPREAD_MEMBERS_MAX)]
    await put_route("late", BILLING, start=StartAt.EARLIEST)
    with pytest.raises(TooManyRoutes, match="for 1 of at most 32 targets"):
        await put_spread(topics, members, start=StartAt.EARLIEST)
    await put_spread(topics, members[1:], start=StartAt.EARLIEST)
    with pytest.raises(TooManyRoutes):
        await put_route("late-2", BILLING, start=StartAt.EARLIEST)

    await topics.topic_routes.delete(SPREAD)
    await put_route("late-2", BILLING, start=StartAt.EARLIEST)


async def test_shadow_spread_has_a_single_history_reader(topics, put_route):
    members = [SpreadMember(queue=f"w{nth}") for nth in range(limits.SPREAD_MEMBERS_MAX)]
    await put_spread(topics, members, start=StartAt.EARLIEST, mode=RouteMode.SHADOW)
    await put_route("late", BILLING, start=StartAt.EARLIEST)


async def put_spread(storage, members, **fields) -> None:
    target = RouteTarget(spread=tuple(members), by=SpreadBy.KEY)
    await storage.topic_routes.put(SPREAD, RouteSpec(target=target, **fields))
