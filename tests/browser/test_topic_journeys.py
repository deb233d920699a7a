"""A topic in the dashboard: created, published to, routed, and asked why a message did not arrive."""

from typing import Any

import pytest
from msgspec.structs import replace
from playwright.async_api import Page, expect

from storage.bootstrap import Storage
from storage.domain.access.oauth import OAuthClient, WebhookCredentials
from storage.domain.access.permissions import Role
from storage.domain.errors import RouteNotFound, TopicNotFound
from storage.domain.filters.documents import Document
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, RouteName, StreamName, TopicName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import Stream, StreamSpec
from storage.domain.streams.topic_spec import TopicSpec, Unmatched
from storage.domain.topics.copy_key import ConstantKey
from storage.domain.topics.formats import CopyFormat
from storage.domain.topics.route import RouteFailurePolicy, RouteSpec, RouteTarget, TopicRoute
from storage.domain.topics.targets.spread import SpreadBy, SpreadMember
from storage.domain.topics.topic import NewPublication, Published
from storage.domain.topics.transform import HeaderTransform, Transform
from tests.browser.conftest import Service, log_in, press
from tests.browser.observations import DESK, LOOKS_ONLY, PHONE, axe, is_too_wide, look
from tests.conditions import eventually
from tests.integration.topics.routing import RunningRouter

pytestmark = pytest.mark.one_store

LARGE = {"subject": "order.*", "filter": {"body": {"total": [{"numeric": [">", 100]}]}}}
MANY = 60


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


async def test_message_that_did_not_arrive_is_explained(page: Page, service: Service):
    storage = service.storage
    await a_topic(storage, "shop", billing=LARGE, crm={"subject": "order.#"}, audit=None)
    await a_route(storage, "shop", "lost", None, RouteTarget(stream="shop-lost"))
    await storage.topic_routes.pause(RouteName(TopicName("shop"), "crm"), paused=True)
    async with RunningRouter(storage):
        published = await publish(storage, "shop", "order.created", b'{"total": 40}')

        async def audit_state() -> str:
            return (await states_of(storage, "shop", published))["audit"]

        await eventually(audit_state, "finished")
        await eventually(lambda: failure_of(storage, "shop", "lost"), True)
    await a_route(storage, "shop", "later", None, RouteTarget(queue="shop-audit"))

    await page.goto("/ui/topics/shop")
    await page.get_by_role("link", name="Messages", exact=True).click()
    await page.get_by_role("link", name="order.created").click()

    await expect(page.locator("h1")).to_have_text("order.created")
    await expect(verdict(page, "audit")).to_contain_text("Queue shop-audit has it")
    await expect(verdict(page, "crm")).to_contain_text("The route is paused.")
    await expect(verdict(page, "lost")).to_contain_text("does not exist")
    await expect(verdict(page, "billing")).to_contain_text(
        'body.total is 40, expected [{"numeric":[">",100]}]'
    )
    await expect(verdict(page, "later")).to_contain_text("Would take it now. It was created after")


async def failure_of(storage: Storage, topic: str, route: str) -> bool:
    return bool((await storage.topic_routes.get(RouteName(TopicName(topic), route))).failure)


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


def verdict(page: Page, route: str):
    """Return the row of a route in a report."""
    link = page.get_by_role("link", name=route, exact=True)
    return page.locator(".verdicts > li").filter(has=link)


async def test_message_is_tried_and_then_published(page: Page, service: Service):
    storage = service.storage
    await a_topic(storage, "tried", billing=LARGE, refunds={"subject": "refund.#"})

    await page.goto("/ui/topics/tried/try")
    await page.locator("form[data-explain] [name=subject]").fill("order.created")
    await page.locator("form[data-explain] [name=headers]").fill("region=eu")
    await page.locator("form[data-explain] [name=body]").fill('{"total": 250}')
    await press(page, "Explain")

    await expect(page.locator("[data-explain-summary]")).to_have_text("1 of 2 take it")
    await expect(verdict(page, "billing")).to_contain_text("Takes it")
    await expect(verdict(page, "refunds")).to_contain_text(
        'subject is "order.created", expected ["refund.#"]'
    )
    await look(page, f"topic-tried-light-{DESK}")
    assert await axe(page) == []
    assert (await storage.topic_reports.status(TopicName("tried"))).messages == 0

    await press(page, "Publish…")
    await expect(page.locator("dialog[open] [data-copied=subject]")).to_have_text("order.created")
    await page.locator("dialog[open]").get_by_role("button", name="Publish", exact=True).click()

    await expect(page.locator("h1")).to_have_text("order.created")
    await expect(verdict(page, "billing")).to_contain_text("Waiting")
    await expect(page.locator("#message-body")).to_contain_text('"total": 250')
    await expect(page.locator(".kv")).to_contain_text("region")


async def test_fault_of_a_tried_message_is_shown(page: Page, service: Service):
    await a_topic(service.storage, "faulty")

    await page.goto("/ui/topics/faulty/try")
    await page.locator("form[data-explain] [name=subject]").fill("order..created")
    await press(page, "Explain")

    await expect(page.locator("form[data-explain] .trouble")).to_contain_text("subject")


async def test_topic_and_route_are_created(page: Page, service: Service):
    storage = service.storage
    await storage.catalog.put_queue(QueueName("made-in"), QueueSpec())

    await page.goto("/ui/topics")
    await press(page, "New topic")
    await page.locator("dialog[open] [name=name]").fill("made")
    await page.locator("dialog[open] [name=unmatched]").select_option("refuse")
    await press(page, "Create")
    await expect(page.locator("h1")).to_have_text("made")
    await press(page, "New route")
    dialog = page.locator("dialog[open]")
    await dialog.locator("[name=route]").fill("large")
    await dialog.locator("[name='match.subject']").fill("order.*\nrefund.#")
    await dialog.locator("[name='match.filter']").fill('{"body": {"total": [1]}}')
    await dialog.locator("[name='match.where']").fill("headers.region = 'eu'")
    await dialog.locator("[name='target.queue']").fill("made-in")
    await dialog.locator("[name=on_failure]").select_option("drop")
    await dialog.get_by_role("button", name="Create", exact=True).click()

    await expect(page.locator("h1")).to_have_text("large")
    await expect(page.locator(".match")).to_have_text(
        "subject order.* or refund.# and body.total = 1 and where headers.region = 'eu'"
    )
    spec = (await storage.topics.get(TopicName("made"))).spec
    route = await storage.topic_routes.get(RouteName(TopicName("made"), "large"))
    assert spec.topic == TopicSpec(unmatched=Unmatched.REFUSE)
    assert route.spec.match == {
        "subject": ["order.*", "refund.#"],
        "filter": {"body": {"total": [1]}},
        "where": "headers.region = 'eu'",
    }
    assert (route.spec.target.queue, route.spec.on_failure) == ("made-in", "drop")


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


async def test_settings_of_topic_are_changed(page: Page, service: Service):
    storage = service.storage
    await a_topic(storage, "settled")

    await page.goto("/ui/topics/settled/settings")
    await page.locator("[name=unmatched]").select_option("refuse")
    await page.locator("[name=retention_seconds]").fill("2d")
    await page.locator("[name=tags]").fill("team=shop")
    await press(page, "Save")

    await expect(page.get_by_text("Refuses unmatched messages")).to_be_visible()
    spec = (await storage.topics.fresh(TopicName("settled"))).spec
    assert (spec.topic, spec.retention_ms) == (TopicSpec(unmatched=Unmatched.REFUSE), 172_800_000)
    assert spec.tags == {"team": "shop"}


async def test_deleting_route_and_topic_requires_their_names(page: Page, service: Service):
    storage = service.storage
    await a_topic(storage, "ended", billing=None)

    for path, name in (("/ui/topics/ended/routes/billing", "billing"), ("settings", "ended")):
        await page.goto(path if path.startswith("/") else f"/ui/topics/ended/{path}")
        await press(page, "Delete…")
        dialog = page.locator("dialog[open]")
        await expect(dialog.locator("button.danger")).to_be_disabled()
        await dialog.locator("[data-must]").fill(name)
        await dialog.locator("button.danger").click()
        await expect(page.locator("h1")).to_have_text("ended" if name == "billing" else "Topics")
        if name == "billing":
            with pytest.raises(RouteNotFound):
                await storage.topic_routes.get(RouteName(TopicName("ended"), name))

    with pytest.raises(TopicNotFound):
        await storage.topics.fresh(TopicName("ended"))


async def test_topic_with_many_routes_has_a_paged_table(page: Page, service: Service):
    storage = service.storage
    await a_topic(storage, "wide")
    for nth in range(MANY):
        target = RouteTarget(queue=f"wide-{nth % 3}")
        await a_route(storage, "wide", f"route-{nth:02}", {"subject": f"order.{nth}"}, target)

    await page.goto("/ui/topics/wide")
    await expect(page.locator("tbody tr")).to_have_count(50)
    await expect(page.locator(".route-map")).to_have_count(0)
    await page.get_by_role("link", name="Next").click()
    await expect(page.locator("tbody tr")).to_have_count(MANY - 50)
    await page.locator("[data-search]").fill("route-1")
    await page.keyboard.press("Enter")

    await expect(page.locator("tbody tr")).to_have_count(10)
    assert await axe(page) == []
    await storage.topics.delete(TopicName("wide"))


async def test_message_is_found_by_text_time_and_id(page: Page, service: Service):
    await a_topic(service.storage, "searched")
    published = [await publish(service.storage, "searched", f"order.{n}") for n in range(60)]

    await page.goto("/ui/topics/searched/messages")
    await expect(page.locator("tbody tr")).to_have_count(50)
    await expect(page.locator("tbody th").first).to_have_text("order.59")
    await search_messages(page, "order.7")
    await expect(page.locator("tbody th")).to_have_text(["order.7"])
    await search_messages(page, "order", "1h")
    await expect(page.locator("tbody th").first).to_have_text("order.0")
    await page.get_by_role("link", name="Search further").click()
    await expect(page.locator("tbody th").first).to_have_text("order.50")
    await search_messages(page, "", "no time")
    await expect(page.locator(".notice-bad")).to_be_visible()
    await search_messages(page, str(published[3].id))
    await page.get_by_role("link", name="Open the message").click()

    await expect(page.locator("h1")).to_have_text("order.3")


async def search_messages(page: Page, words: str, time: str = "") -> None:
    await page.locator("[name=q]:visible").fill(words)
    await page.locator("[name=time]").fill(time)
    await press(page, "Search")


async def test_message_of_many_routes_is_explained_by_name(page: Page, service: Service):
    await a_topic(service.storage, "named", billing=LARGE)
    published = await publish(service.storage, "named", "refund.created")

    await page.goto(f"/ui/topics/named/messages/{published.id}?route=billing")
    await expect(verdict(page, "billing")).to_contain_text("refund.created")
    await page.goto(f"/ui/topics/named/messages/{published.id}?route=nothing")

    await expect(page.get_by_text("No route nothing")).to_be_visible()


async def test_palette_finds_routes_of_a_topic(page: Page, service: Service):
    await a_topic(service.storage, "sought", billing=None, crm=None)

    await page.goto("/ui")
    await page.keyboard.press("Control+k")
    await page.locator("#palette input").fill("sought/bil")
    await page.get_by_role("option", name="sought/billing").click()

    await expect(page.locator("h1")).to_have_text("billing")


async def test_viewer_sees_no_messages_of_a_topic(secured_service: Page, service: Service):
    await a_topic(service.storage, "private", billing=LARGE)
    key = await service.key(Role.VIEWER)
    await secured_service.goto("/ui/login")
    await log_in(secured_service, key.token)
    await expect(secured_service.locator(".nav")).to_be_visible()
    await secured_service.goto("/ui/topics/private")

    await expect(secured_service.locator(".route-map")).to_contain_text("order.*")
    await expect(secured_service.get_by_role("button", name="New route")).to_have_count(0)
    await expect(secured_service.locator(".tabs")).not_to_contain_text("Messages")
    answer = await secured_service.goto("/ui/topics/private/messages")
    assert answer is not None
    assert answer.status == 403


@pytest.mark.parametrize(
    ("path", "button"),
    [
        ("", "New topic"),
        ("/shown", "New route"),
        ("/shown/try", "Publish…"),
        ("/shown/settings", "Delete…"),
        ("/shown/routes/billing", "Edit…"),
        ("/shown/routes/billing", "Delete…"),
    ],
)
async def test_topic_dialog_is_accessible_in_both_themes(page, service: Service, path, button):
    await a_topic(service.storage, "shown", billing=LARGE)
    await page.goto(f"/ui/topics{path}")
    await press(page, button)
    place = path.strip("/").replace("/", "-")
    name = f"topic-dialog-{place}-{button.strip('…').lower().replace(' ', '-')}"
    await look(page, f"{name}-light-{DESK}")
    faults = await axe(page)

    await page.set_viewport_size({"width": PHONE, "height": 900})
    await page.emulate_media(color_scheme="dark")
    await look(page, f"{name}-dark-{PHONE}")

    assert [*faults, *await axe(page, LOOKS_ONLY)] == []
    assert not await is_too_wide(page)


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


async def test_message_names_its_member(page: Page, service: Service):
    storage = service.storage
    await a_topic(storage, "spread")
    await storage.catalog.put_queue(QueueName("spread-1"), QueueSpec())
    members = (SpreadMember(queue="spread-1"), SpreadMember(queue="spread-lost"))
    target = RouteTarget(spread=members, by=SpreadBy.SUBJECT)
    route = await a_route(storage, "spread", "workers", None, target)
    subjects: dict[str, str] = {}
    for number in range(20):
        document = Document(f"order.{number}", "", (), b"", {})
        member = route.spec.member_for(document, "")
        assert member is not None
        subjects[member.name] = document.subject
    async with RunningRouter(storage):
        there = await publish(storage, "spread", subjects["spread-1"])
        waiting = await publish(storage, "spread", subjects["spread-lost"])

        async def states() -> list[str]:
            return [
                (await states_of(storage, "spread", one))["workers"] for one in (there, waiting)
            ]

        await eventually(states, ["finished", "waiting"])
        await eventually(lambda: failure_of(storage, "spread", "workers"), True)

    await page.goto(f"/ui/topics/spread/messages/{there.id}")
    await expect(verdict(page, "workers")).to_contain_text("Queue spread-1 has it")
    await page.goto(f"/ui/topics/spread/messages/{waiting.id}")
    await expect(verdict(page, "workers")).to_contain_text("For queue:spread-lost")
    await page.goto("/ui/topics/spread/routes/workers")
    await expect(page.locator(".kv")).to_contain_text("Lag of queue:spread-lost")
