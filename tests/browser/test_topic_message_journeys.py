"""Messages of a topic in the dashboard: tried, published, found and explained."""

import pytest
from playwright.async_api import Page, expect

from storage.domain.filters.documents import Document
from storage.domain.names import QueueName, RouteName, TopicName
from storage.domain.queues.queue import QueueSpec
from storage.domain.topics.route import RouteTarget
from storage.domain.topics.targets.spread import SpreadBy, SpreadMember
from tests.browser.conftest import Service, press
from tests.browser.observations import DESK, axe, look
from tests.browser.topics import LARGE, a_route, a_topic, failure_of, publish, states_of, verdict
from tests.conditions import eventually
from tests.integration.topics.routing import RunningRouter, shorten_periods

pytestmark = pytest.mark.one_store


@pytest.fixture(autouse=True)
def _short_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_periods(monkeypatch)


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
