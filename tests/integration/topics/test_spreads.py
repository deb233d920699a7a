"""Routes to spreads: each message once in the member that it belongs to, whoever fails meanwhile."""

import asyncio
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from consumers.feeds.feed import Feeds
from consumers.routing.topic_router import RoutingContext, TopicRouter
from storage.bootstrap import Storage, open_storage
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.errors import RouteCycle
from storage.domain.filters.documents import Document
from storage.domain.names import QueueName, RouteName, TopicName
from storage.domain.queues.policies import Overflow
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.start_at import StartAt
from storage.domain.streams.stream import ReadFrom, StreamSpec
from storage.domain.topics.report import MessageRouteState, RouteExplanation, RouteState
from storage.domain.topics.route import RouteFailurePolicy, RouteMode, RouteSpec, RouteTarget
from storage.domain.topics.targets.spread import SpreadBy, SpreadMember
from storage.domain.topics.topic import NewPublication, Published
from tests.integration.topics.routing import (
    AUDIT,
    BILLING,
    CRM,
    ORDERS,
    RunningRouter,
    is_empty,
    read_all,
    receive_all,
    until,
)

pytestmark = pytest.mark.one_store

SPREAD = RouteName(ORDERS, "spread")
LOST, DEAD = QueueName("lost"), QueueName("dead")
PARTNER = TopicName("partner")
TWO = (SpreadMember(queue="billing"), SpreadMember(queue="crm"))
FAILING = (SpreadMember(queue="billing"), SpreadMember(queue="lost"))
COUNT = 200


async def put_spread(storage: Storage, members=TWO, by=SpreadBy.KEY, **fields) -> None:
    spec = RouteSpec(target=RouteTarget(spread=members, by=by), **fields)
    await storage.topic_routes.put(SPREAD, spec)


async def publish(storage: Storage, first: int = 0, count: int = COUNT) -> list[Published]:
    """Publish numbered messages with ten keys in turn."""
    messages = [
        NewPublication(b"%d" % number, "order", f"k{number % 10}")
        for number in range(first, first + count)
    ]
    answers = await storage.topics.publish(ORDERS, messages)
    return [one for one in answers if isinstance(one, Published)]


async def expected(storage: Storage, member: int, route: RouteName = SPREAD) -> list[bytes]:
    """Return the messages of the topic that belong to a member of a route, in order."""
    spread = await storage.topic_routes.get(route)
    page = await storage.record_reader.read_shard(ORDERS.stream, 0, ReadFrom(offset=0))
    return [
        one.record.data
        for one in page.records
        if spread.branch_of(0, one.offset, one.record).member == member
    ]


async def assert_received(storage: Storage, queues: Sequence[QueueName] = (BILLING, CRM)) -> None:
    """Receive all messages of the topic from the queues of a spread."""
    for member, queue in enumerate(queues):
        bodies = await expected(storage, member)
        assert bodies, "no message belongs to the member"
        assert await receive_all(storage, queue, len(bodies)) == bodies
        assert await is_empty(storage, queue)


async def counted(storage: Storage, **fields: object) -> None:
    """Wait until the route has these counts and failures."""

    async def is_met() -> bool:
        route = await storage.topic_routes.get(SPREAD)
        return all(getattr(route, name) == value for name, value in fields.items())

    await until(is_met)


@pytest.mark.usefixtures("router")
@pytest.mark.parametrize("by", SpreadBy)
async def test_each_message_is_in_its_member_alone(topics, by):
    members = (*TWO, SpreadMember(stream="audit", weight=2), SpreadMember(topic="partner"))
    await topics.topics.put(PARTNER, StreamSpec())
    await put_spread(topics, members, by)
    if by is SpreadBy.SUBJECT:
        messages = [NewPublication(b"%d" % nth, f"s{nth % 20}") for nth in range(COUNT)]
        await topics.topics.publish(ORDERS, messages)
    else:
        await publish(topics)

    await counted(topics, delivered=COUNT)
    streams = {2: AUDIT, 3: PARTNER.stream}
    queues = {0: BILLING, 1: CRM}
    for member, queue in queues.items():
        bodies = await expected(topics, member)
        assert await receive_all(topics, queue, len(bodies)) == bodies
        assert await is_empty(topics, queue)
    for member, stream in streams.items():
        bodies = await expected(topics, member)
        assert await read_all(topics, stream, len(bodies)) == bodies


@pytest.mark.usefixtures("router")
async def test_missing_member_holds_back_its_messages_alone(topics, monkeypatch):
    monkeypatch.setattr(limits, "ROUTER_OUTBOX_RECORDS", 10)
    await put_spread(topics, FAILING)
    published = await publish(topics)
    bodies = await expected(topics, 0)
    assert await receive_all(topics, BILLING, len(bodies)) == bodies

    async def has_failed() -> bool:
        progress = await topics.topic_reports.progress(SPREAD)
        billing, lost = progress.members
        return progress.state is RouteState.FAILING and billing.lag_messages < lost.lag_messages

    await until(has_failed)
    assert [one.route.name for one in await topics.topic_reports.lagging("default")] == [SPREAD]

    async def waits_for_lost_alone() -> bool:
        states = [await state_of(topics, one) for one in published]
        return all(
            (state is MessageRouteState.WAITING) == (member.queue == "lost")
            for member, state in states
        )

    await until(waits_for_lost_alone)

    await topics.catalog.put_queue(LOST, QueueSpec())
    lost = await expected(topics, 1)
    assert await receive_all(topics, LOST, len(lost)) == lost
    await counted(topics, delivered=COUNT, failure="")


async def state_of(storage: Storage, one: Published) -> tuple[SpreadMember, MessageRouteState]:
    [route] = await storage.topic_reports.routes_of_message(ORDERS, one.id)
    assert route.member is not None
    return route.member, route.state


@pytest.mark.usefixtures("router")
async def test_full_member_holds_back_its_messages_alone(topics, monkeypatch):
    monkeypatch.setattr(limits, "ROUTER_OUTBOX_RECORDS", 10)
    monkeypatch.setattr(limits, "ROUTER_BATCH_RECORDS", 5)
    await topics.catalog.put_queue(LOST, QueueSpec(messages_max=20, overflow=Overflow.REJECT))
    await put_spread(topics, FAILING)
    await publish(topics)

    await assert_received(topics, (BILLING, LOST))


@pytest.mark.usefixtures("router")
async def test_dead_letters_of_members_arrive_once(topics):
    """Members have producers of their own: one does not wait for the dead letters of another."""
    await topics.catalog.put_queue(DEAD, QueueSpec())
    both = (SpreadMember(queue="lost"), SpreadMember(queue="lost-too"))
    policy = RouteFailurePolicy.DEAD_LETTER
    await put_spread(topics, both, on_failure=policy, dead_letter_queue="dead")
    for first in range(0, COUNT, 5):
        await publish(topics, first, 5)

    letters = await receive_all(topics, DEAD, COUNT)
    assert sorted(map(int, letters)) == [*range(COUNT)]
    assert await is_empty(topics, DEAD)
    await counted(topics, dead_lettered=COUNT)


async def test_dead_letters_of_members_arrive_once_through_restarts(topics, monkeypatch):
    await topics.catalog.put_queue(DEAD, QueueSpec())
    policy = RouteFailurePolicy.DEAD_LETTER
    await put_spread(topics, FAILING, on_failure=policy, dead_letter_queue="dead")
    await publish(topics)

    async def die(*_):
        """Store nothing."""

    with monkeypatch.context() as unsaved:
        unsaved.setattr(TopicRouter, "report", die)
        async with RunningRouter(topics):
            letters = await receive_all(topics, DEAD, len(await expected(topics, 1)))
    await topics.catalog.put_queue(LOST, QueueSpec())
    async with RunningRouter(topics):
        await counted(topics, dead_lettered=1, delivered=COUNT - 1)

    assert letters == await expected(topics, 1)
    billing = await expected(topics, 0)
    assert await receive_all(topics, BILLING, len(billing)) == billing
    for queue in (BILLING, LOST, DEAD):
        assert await is_empty(topics, queue)


@pytest.mark.usefixtures("router")
async def test_missing_member_drops_its_messages_alone(topics):
    await put_spread(topics, FAILING, on_failure=RouteFailurePolicy.DROP)
    await publish(topics)

    billing = await expected(topics, 0)
    await counted(topics, dropped=COUNT - len(billing), delivered=len(billing))
    assert await receive_all(topics, BILLING, len(billing)) == billing


async def test_two_routers_agree_on_members(topics, settings):
    """One that outlived its lease goes on beside its successor."""
    await put_spread(topics, by=SpreadBy.RANDOM)
    stream = await topics.topics.get(ORDERS)
    async with open_storage(settings) as other:
        routers = [
            TopicRouter(RoutingContext(one, Feeds(one.record_reader, {})), stream, 1)
            for one in (topics, other)
        ]
        tasks = [asyncio.create_task(one.run()) for one in routers]
        for first in range(0, COUNT, 50):
            await publish(topics, first, 50)

        async def have_sent() -> bool:
            return all(one.sent() == {0: COUNT} for one in routers)

        await until(have_sent)
        await end(*tasks)
    await assert_received(topics)


async def test_router_stopped_midway_leaves_nothing_out(topics, monkeypatch):
    monkeypatch.setattr(limits, "ROUTER_BATCH_RECORDS", 7)
    await put_spread(topics, (*TWO[:1], SpreadMember(stream="audit")))
    await publish(topics)
    for count in (20, 50):
        async with RunningRouter(topics):
            await read_all(topics, AUDIT, count)
    async with RunningRouter(topics):
        await counted(topics, delivered=COUNT)

    billing, audit = await expected(topics, 0), await expected(topics, 1)
    assert await receive_all(topics, BILLING, len(billing)) == billing
    assert await is_empty(topics, BILLING)
    assert await read_all(topics, AUDIT, len(audit)) == audit


@pytest.mark.usefixtures("router")
async def test_paused_spread_receives_all_after_resume(topics):
    await put_spread(topics, paused=True)
    await publish(topics)

    async def is_held() -> bool:
        stream = await topics.topics.get(ORDERS)
        return len((await topics.topic_routing.positions.read(stream.stream_id)).lags) == len(TWO)

    await until(is_held)
    assert await is_empty(topics, BILLING)
    await topics.topic_routes.pause(SPREAD, paused=False)

    await assert_received(topics)


@pytest.mark.usefixtures("router")
async def test_new_spread_takes_earlier_messages(topics):
    await publish(topics)
    await put_spread(topics, start=StartAt.EARLIEST)
    await publish(topics, COUNT, 20)

    await assert_received(topics)

    async def is_done() -> bool:
        return bool((await topics.topic_routes.get(SPREAD)).history_done)

    await until(is_done)


@pytest.mark.usefixtures("router")
async def test_changed_spread_moves_only_keys_of_new_member(topics):
    await put_spread(topics)
    await publish(topics)
    before = [await expected(topics, member) for member in (0, 1)]
    former = await topics.topic_routes.get(SPREAD)
    await put_spread(topics, (*TWO, SpreadMember(queue="lost")))
    await topics.catalog.put_queue(LOST, QueueSpec())
    await publish(topics, COUNT, COUNT)

    for member, queue in enumerate((BILLING, CRM, LOST)):
        later = [one for one in await expected(topics, member) if int(one) >= COUNT]
        bodies = [*before[member], *later] if member < len(before) else later
        assert await receive_all(topics, queue, len(bodies)) == bodies
        assert await is_empty(topics, queue)
        if member < len(before):  # ten keys in turn
            assert {int(one) % 10 for one in later} <= {int(one) % 10 for one in before[member]}

    async def is_forgotten() -> bool:
        return not await topics.topic_routing.routes.ended(ORDERS, former.stream_id)

    await until(is_forgotten)
    producer = former.producer_ids[0]
    assert await topics.queues.last_sequences(BILLING, [producer]) == {}
    assert await topics.queues.last_sequences(CRM, [producer]) == {}


@pytest.mark.usefixtures("router")
async def test_route_to_a_member_shares_its_queue(topics):
    await put_spread(topics)
    spec = RouteSpec(target=RouteTarget(queue="billing"))
    await topics.topic_routes.put(RouteName(ORDERS, "billing"), spec)
    await publish(topics)

    crm = await expected(topics, 1)
    assert await receive_all(topics, CRM, len(crm)) == crm
    bodies = await receive_all(topics, BILLING, 2 * COUNT - len(crm))
    counts = {number: bodies.count(b"%d" % number) for number in range(COUNT)}
    assert counts == {number: 1 + (b"%d" % number not in crm) for number in range(COUNT)}


@pytest.mark.usefixtures("router")
async def test_shadow_of_spread_counts_alone(topics):
    await put_spread(topics, mode=RouteMode.SHADOW)
    await publish(topics)
    await counted(topics, shadowed=COUNT)
    assert await is_empty(topics, BILLING)
    assert (await topics.topic_reports.progress(SPREAD)).members == []


async def test_explanation_names_the_member(topics):
    await put_spread(topics)

    async def member_of(document: Document, place: str = "") -> SpreadMember | None:
        explanations = topics.topic_reports.explain(ORDERS, document, place=place)
        explanation: RouteExplanation = await anext(explanations)
        return explanation.member

    keyless = Document("order", "", (), b"", {})
    assert await member_of(Document("order", "k1", (), b"", {})) in TWO
    assert await member_of(keyless) is None
    assert await member_of(keyless, "0123456789abcdef-0-7") in TWO


async def test_spread_that_leads_back_is_refused(topics):
    await topics.topics.put(PARTNER, StreamSpec())
    back = RouteSpec(target=RouteTarget(spread=(TWO[0], SpreadMember(topic="orders"))))
    with pytest.raises(RouteCycle):
        await topics.topic_routes.put(RouteName(ORDERS, "own"), back)

    await topics.topic_routes.put(RouteName(PARTNER, "back"), back)
    with pytest.raises(RouteCycle):
        await put_spread(topics, (TWO[0], SpreadMember(topic="partner")))
    direct = replace(back, target=RouteTarget(topic="partner"))
    with pytest.raises(RouteCycle):
        await topics.topic_routes.put(SPREAD, direct)
