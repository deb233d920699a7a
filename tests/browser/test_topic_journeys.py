"""A topic in the dashboard: created, changed, listed and deleted."""

import pytest
from playwright.async_api import Page, expect

from storage.domain.access.permissions import Role
from storage.domain.errors import RouteNotFound, TopicNotFound
from storage.domain.names import QueueName, RouteName, TopicName
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.topic_spec import TopicSpec, Unmatched
from storage.domain.topics.route import RouteTarget
from tests.browser.conftest import Service, log_in, press
from tests.browser.observations import DESK, LOOKS_ONLY, PHONE, axe, is_too_wide, look
from tests.browser.topics import LARGE, a_route, a_topic

pytestmark = pytest.mark.one_store

MANY = 60


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
