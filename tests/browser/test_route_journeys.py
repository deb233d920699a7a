"""Routes in the dashboard: created, edited, paused, of every source and target."""

import pytest
from msgspec.structs import replace
from playwright.async_api import Page, expect

from storage.domain.access.oauth import OAuthClient, WebhookCredentials
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, RouteName, StreamName, TopicName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec
from storage.domain.topics.copy_key import ConstantKey
from storage.domain.topics.formats import CopyFormat
from storage.domain.topics.route import RouteFailurePolicy, RouteSpec, RouteTarget
from storage.domain.topics.targets.spread import SpreadBy, SpreadMember
from storage.domain.topics.transform import HeaderTransform, Transform
from tests.browser.conftest import Service, press
from tests.browser.observations import DESK, axe, look
from tests.browser.topics import LARGE, a_topic, verdict
from tests.conditions import eventually
from tests.integration.topics.routing import RunningRouter, shorten_periods

pytestmark = pytest.mark.one_store


@pytest.fixture(autouse=True)
def _short_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_periods(monkeypatch)


async def test_records_of_stream_become_tasks(page: Page, service: Service):
    storage = service.storage
    await storage.catalog.put_stream(StreamName("visits"), StreamSpec())
    await storage.catalog.put_queue(QueueName("visit-tasks"), QueueSpec())

    await page.goto("/ui/streams/visits")
    await page.get_by_role("link", name="Routes", exact=True).click()
    await press(page, "New route")
    form = page.get_by_role("dialog")
    await form.locator("[name=route]").fill("vip")
    await form.locator("[name='target.queue']").fill("visit-tasks")
    await form.locator("[name='match.filter']").fill('{"body": {"vip": [true]}}')
    await form.get_by_role("button", name="Create").click()
    await expect(page.locator("h1")).to_have_text("vip")

    async with RunningRouter(storage):
        bodies = (b'{"vip": true}', b'{"vip": false}')
        await storage.streams.append(StreamName("visits"), [Record(body) for body in bodies])

        async def waiting() -> int:
            return (await storage.queues.stats(QueueName("visit-tasks"))).ready

        await eventually(waiting, 1)

    await page.goto("/ui/topics")
    await page.get_by_role("link", name="stream:visits").click()
    await page.get_by_role("link", name="Records", exact=True).click()
    await page.get_by_role("link", name="0 / 1").click()
    await expect(verdict(page, "vip")).to_contain_text("body.vip is false, expected [true]")


async def test_messages_of_a_queue_are_routed(page: Page, service: Service):
    storage = service.storage
    uploads, images, chained = QueueName("uploads"), QueueName("images"), QueueName("chained")
    for queue in (uploads, images, chained):
        await storage.catalog.put_queue(queue, QueueSpec())
    for topic in (TopicName.of_queue(chained), TopicName("chained")):
        await storage.topics.put(topic, StreamSpec())

    await page.goto("/ui/queues/uploads")
    await page.get_by_role("link", name="Routes", exact=True).click()
    await press(page, "New route")
    form = page.get_by_role("dialog")
    await form.locator("[name=route]").fill("images")
    await form.locator("[name='target.topic']").focus()
    await expect(form.locator("option[value='queue:chained']")).to_have_count(0)
    await expect(form.locator("option[value='chained']")).to_have_count(1)
    await form.locator("[name='target.queue']").fill("images")
    await form.locator("[name='match.filter']").fill('{"body": {"type": ["image"]}}')
    await form.get_by_role("button", name="Create").click()
    await expect(page.locator("h1")).to_have_text("images")

    async with RunningRouter(storage):
        bodies = (b'{"type": "image"}', b'{"type": "video"}')
        await storage.queues.send(uploads, [NewMessage(body) for body in bodies])

        async def waiting() -> int:
            return (await storage.queues.stats(images)).ready

        await eventually(waiting, 1)

    await page.goto("/ui/queues/uploads")
    await page.get_by_role("link", name="Routes", exact=True).click()
    await expect(page.locator("h1")).to_have_text("queue:uploads")
    await look(page, f"queue-routes-light-{DESK}")
    assert await axe(page) == []
    await page.get_by_role("link", name="Takes the messages of the queue uploads").click()
    await page.get_by_role("link", name="Dead letters 1").click()
    await expect(page.get_by_text("unroutable").first).to_be_visible()


@pytest.mark.parametrize(
    "match",
    [
        None,
        {"subject": "order.*"},
        {"subject": ["order.*"]},
        {**LARGE, "where": "key = 'x'"},
        [{"subject": "order.*"}, {"where": "body.vip"}],
    ],
    ids=["none", "subject", "subjects", "all", "several"],
)
async def test_route_edit_keeps_what_is_not_changed(page: Page, service: Service, match):
    """A new number of a route would begin another revision."""
    storage = service.storage
    await a_topic(storage, "edited", billing=match)
    name = RouteName(TopicName("edited"), "billing")
    before = await storage.topic_routes.get(name)

    await page.goto("/ui/topics/edited/routes/billing")
    await press(page, "Edit…")
    await page.locator("dialog[open] [name=on_failure]").select_option("drop")
    await page.locator("dialog[open] [name=tags]").fill("team=shop")
    await press(page, "Save")

    await expect(page.locator("dd", has_text="messages are dropped")).to_be_visible()
    after = await storage.topic_routes.get(name)
    assert (after.number, after.spec.match) == (before.number, match)
    assert after.spec.tags == {"team": "shop"}
    await storage.topics.delete(TopicName("edited"))


@pytest.mark.parametrize("key", ["/body/id", ConstantKey("all")], ids=["pointer", "constant"])
async def test_route_edit_keeps_how_copies_are_made(page: Page, service: Service, key):
    storage = service.storage
    await a_topic(storage, "copied")
    name = RouteName(TopicName("copied"), "billing")
    spec = RouteSpec(
        target=RouteTarget(queue="copied-in"),
        transform=Transform(
            paths={"id": "/body/id"},
            template={"id": "<id>"},
            headers=HeaderTransform(templates={"x": "<key>"}, remove=("y",)),
        ),
        format=CopyFormat.ENVELOPE,
        key=key,
        delay_ms=1_500,
        ttl_ms=60_000,
        on_failure=RouteFailurePolicy.DEAD_LETTER,
        dead_letter_queue="copied-dead",
    )
    before = (await storage.topic_routes.put(name, spec)).definition

    await page.goto("/ui/topics/copied/routes/billing")
    await press(page, "Edit…")
    await page.locator("dialog[open] [name=tags]").fill("team=shop")
    await press(page, "Save")

    await expect(page.locator(".badge", has_text="team: shop")).to_be_visible()
    after = await storage.topic_routes.get(name)
    assert after.spec == replace(spec, tags={"team": "shop"})
    assert after.number == before.number
    await look(page, f"route-copies-light-{DESK}")
    await storage.topics.delete(TopicName("copied"))


async def test_route_to_url_leads_to_its_deliveries(page: Page, service: Service):
    storage = service.storage
    name = RouteName(TopicName("posting"), "crm")
    client = OAuthClient(
        token_url="https://login.example/token", client_id="shop", client_secret="opensesame"
    )
    target = RouteTarget(
        url="https://shop.example/hooks",
        headers=(("x-key", "7"),),
        credentials=WebhookCredentials(oauth=client),
        rate=5,
    )
    await storage.topics.put(name.topic, StreamSpec())
    before = (await storage.topic_routes.put(name, RouteSpec(target=target))).definition

    await page.goto("/ui/topics/posting")
    await expect(page.get_by_role("link", name="shop.example")).to_be_visible()
    await look(page, f"topic-url-light-{DESK}")
    await page.goto("/ui/topics/posting/routes/crm")
    await look(page, f"route-url-light-{DESK}")
    await page.emulate_media(color_scheme="dark")
    await look(page, f"route-url-dark-{DESK}")
    await press(page, "Edit…")
    await page.locator("dialog[open] [name=tags]").fill("team=shop")
    await press(page, "Save")
    await expect(page.locator(".badge", has_text="team: shop")).to_be_visible()
    after = await storage.topic_routes.get(name)
    await page.get_by_role("link", name="route:posting.crm").click()

    await expect(page.locator(".notice")).to_contain_text("belongs to route crm of topic posting")
    await look(page, f"webhook-of-route-dark-{DESK}")
    await expect(page.get_by_role("button", name="Edit…")).to_have_count(0)
    await page.goto("/ui/queues/route:posting.crm/settings")
    await expect(page.locator(".notice")).to_contain_text("belongs to route crm")
    await expect(page.get_by_role("button", name="Delete…")).to_have_count(0)
    assert after.spec == replace(before.spec, tags={"team": "shop"})
    assert after.number == before.number
    await storage.topics.delete(name.topic)


async def test_order_of_url_is_chosen_and_kept(page: Page, service: Service):
    name = RouteName(TopicName("in-order"), "crm")
    await service.storage.topics.put(name.topic, StreamSpec())

    await page.goto("/ui/topics/in-order")
    await press(page, "New route")
    await page.locator("dialog[open] [name=route]").fill("crm")
    await page.locator("dialog[open] [name='target.url']").fill("https://shop.example/hooks")
    await page.locator("dialog[open] [name='target.ordered']").select_option("true")
    await page.locator("dialog[open]").get_by_role("button", name="Create", exact=True).click()
    await expect(page.get_by_text("one message of a key at a time")).to_be_visible()
    await press(page, "Edit…")
    await page.locator("dialog[open] [name=tags]").fill("team=shop")
    await press(page, "Save")

    await expect(page.locator(".badge", has_text="team: shop")).to_be_visible()
    assert (await service.storage.topic_routes.get(name)).spec.target.ordered
    await service.storage.topics.delete(name.topic)


async def test_paused_route_is_resumed(page: Page, service: Service):
    storage = service.storage
    await a_topic(storage, "halted", billing=None)
    name = RouteName(TopicName("halted"), "billing")

    await page.goto("/ui/topics/halted/routes/billing")
    await press(page, "Pause route")
    await expect(page.locator(".title")).to_contain_text("Paused")
    paused = (await storage.topic_routes.get(name)).spec.paused
    await press(page, "Resume route")
    await expect(page.locator(".title")).to_contain_text("Active")

    assert (paused, (await storage.topic_routes.get(name)).spec.paused) == (True, False)


async def test_route_to_spread_is_created_and_edited(page: Page, service: Service):
    storage = service.storage
    await a_topic(storage, "fleet")
    for queue in ("fleet-1", "fleet-2"):
        await storage.catalog.put_queue(QueueName(queue), QueueSpec())
    name = RouteName(TopicName("fleet"), "workers")

    await page.goto("/ui/topics/fleet")
    await press(page, "New route")
    dialog = page.locator("dialog[open]")
    await dialog.locator("[name=route]").fill("workers")
    await dialog.locator("[name='target.spread']").fill("queue:fleet-1=3\nfleet-2")
    await dialog.get_by_role("button", name="Create", exact=True).click()
    await expect(dialog.locator(".trouble")).to_contain_text("“fleet-2” is not a member")
    await dialog.locator("[name='target.spread']").fill("queue:fleet-1=3\nqueue:fleet-2")
    await dialog.locator("[name='target.by']").select_option("subject")
    await dialog.get_by_role("button", name="Create", exact=True).click()

    await expect(page.locator("h1")).to_have_text("workers")
    await expect(page.locator(".kv")).to_contain_text("Spread by subject")
    await expect(page.locator(".kv")).to_contain_text("queue:fleet-1 75 %")
    before = await storage.topic_routes.get(name)
    members = (SpreadMember(queue="fleet-1", weight=3), SpreadMember(queue="fleet-2"))
    assert before.spec.target == RouteTarget(spread=members, by=SpreadBy.SUBJECT)

    await press(page, "Edit…")
    await page.locator("dialog[open] [name=tags]").fill("team=shop")
    await press(page, "Save")
    await expect(page.locator(".badge", has_text="team")).to_be_visible()
    assert (await storage.topic_routes.get(name)).number == before.number

    await page.goto("/ui/topics/fleet")
    await expect(page.locator(".map-target .map-node")).to_have_count(2)
    await look(page, f"topic-fleet-light-{DESK}")
    assert await axe(page) == []
    await page.goto("/ui/topics/fleet/try")
    await page.locator("form[data-explain] [name=subject]").fill("order.created")
    await press(page, "Explain")
    await expect(verdict(page, "workers")).to_contain_text("Member queue:fleet-")
