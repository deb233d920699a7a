"""Routes that start in the past, shadows and routes of the unmatched in the dashboard, and back-tests."""

import pytest
from msgspec.structs import replace
from playwright.async_api import Page, expect

from storage.domain.names import RouteName, TopicName
from storage.domain.streams.start_at import StartAt
from storage.domain.topics.route import UNMATCHED, RouteMode, RouteSpec, RouteTarget
from tests.back_test_worker import back_test_worker
from tests.browser.conftest import Service, press
from tests.browser.observations import DESK, LOOKS_ONLY, PHONE, axe, is_too_wide, look
from tests.browser.topics import LARGE, a_topic, publish

pytestmark = pytest.mark.one_store

TARGET = RouteTarget(queue="past-in")


async def test_shadow_of_unmatched_starts_at_earliest(page: Page, service: Service):
    await a_topic(service.storage, "past")

    await page.goto("/ui/topics/past")
    await press(page, "New route")
    dialog = page.locator("dialog[open]")
    await dialog.locator("[name=route]").fill("rest")
    await dialog.locator("[name=match]").select_option("unmatched")
    await dialog.locator("[name='target.queue']").fill("past-in")
    await dialog.locator("[name=mode]").select_option("shadow")
    await dialog.locator("[name=start]").select_option("earliest")
    await dialog.get_by_role("button", name="Create", exact=True).click()

    await expect(page.locator("h1")).to_have_text("rest")
    await expect(page.locator(".match")).to_have_text("messages that no other route takes")
    await expect(page.locator("dd", has_text="the earliest message")).to_be_visible()
    route = await service.storage.topic_routes.get(RouteName(TopicName("past"), "rest"))
    assert route.spec == RouteSpec(
        target=TARGET, match=UNMATCHED, mode=RouteMode.SHADOW, start=StartAt.EARLIEST
    )
    await look(page, f"route-shadow-light-{DESK}")
    await service.storage.topics.delete(TopicName("past"))


@pytest.mark.parametrize(
    "spec",
    [
        RouteSpec(target=TARGET, match=UNMATCHED, mode=RouteMode.SHADOW),
        RouteSpec(target=TARGET, start=StartAt.EARLIEST),
        RouteSpec(target=TARGET, start=StartAt.TIME, start_time_ms=1_700_000_000_123),
    ],
    ids=["unmatched", "earliest", "time"],
)
async def test_route_edit_keeps_start_and_mode(page: Page, service: Service, spec):
    storage, name = service.storage, RouteName(TopicName("again"), "late")
    await a_topic(storage, "again")
    before = (await storage.topic_routes.put(name, spec)).definition

    await page.goto("/ui/topics/again/routes/late")
    await press(page, "Edit…")
    await page.locator("dialog[open] [name=tags]").fill("team=shop")
    await press(page, "Save")

    await expect(page.locator(".badge", has_text="team: shop")).to_be_visible()
    after = await storage.topic_routes.get(name)
    assert after.spec == replace(spec, tags={"team": "shop"})
    assert after.number == before.number
    await storage.topics.delete(TopicName("again"))


async def test_match_is_evaluated_on_messages_of_topic(page: Page, service: Service):
    await a_topic(service.storage, "tested", billing=LARGE)
    await publish(service.storage, "tested", "order.created", b'{"total": 250}')
    small = await publish(service.storage, "tested", "order.created", b'{"total": 5}')
    await publish(service.storage, "tested", "refund", b'{"total": 250}')

    await page.goto("/ui/topics/tested")
    await page.get_by_role("link", name="Back-test").click()
    await page.locator("[name='match.subject']").fill("order.*")
    await page.locator("[name=compare_with]").fill("billing")
    await press(page, "Evaluate")

    result = page.locator("[data-backtest-result]")
    await expect(result.locator("dd").first).to_have_text("3")
    await expect(result).to_contain_text("Gained")
    await expect(result.locator("a")).to_have_text(str(small.id))
    await look(page, f"backtest-result-light-{DESK}")
    faults = await axe(page)
    await page.set_viewport_size({"width": PHONE, "height": 900})
    await page.emulate_media(color_scheme="dark")
    await look(page, f"backtest-result-dark-{PHONE}")
    assert [*faults, *await axe(page, LOOKS_ONLY)] == []
    assert not await is_too_wide(page)

    await page.locator("[name='match.where']").fill("body.total >")
    await press(page, "Evaluate")
    await expect(page.locator(".trouble")).to_be_visible()
    await service.storage.topics.delete(TopicName("tested"))


async def test_job_evaluates_what_a_call_left_out(page: Page, service: Service):
    await a_topic(service.storage, "whole", billing=LARGE)
    for total in (250, 5, 7):
        await publish(service.storage, "whole", "order.created", b'{"total": %d}' % total)
    result, job = page.locator("[data-backtest-result]"), page.locator("[data-backtest-job]")

    await page.goto("/ui/topics/whole/backtest")
    await page.locator("[name='match.subject']").fill("order.*")
    await page.locator("[name=compare_with]").fill("billing")
    await page.locator("[name=messages_max]").fill("2")
    await press(page, "Evaluate")
    await expect(result.locator("dd").first).to_have_text("2")
    await press(page, "Evaluate all messages in a job")
    await expect(job).to_contain_text("queued: Waits for a worker: none is running")
    await look(page, f"backtest-job-queued-light-{DESK}")
    await press(page, "Cancel the job")
    await expect(job).to_contain_text("cancelled")
    await expect(page.get_by_role("button", name="Cancel the job")).to_be_hidden()

    await press(page, "Evaluate")
    async with back_test_worker(service.settings):
        await press(page, "Evaluate all messages in a job")
        await expect(page.locator("[data-backtest-summary]")).to_have_text(
            "all messages of the range"
        )
    await expect(result.locator("a")).to_have_count(2)
    await expect(page.locator("[data-backtest-offer]")).to_be_hidden()
    await look(page, f"backtest-job-light-{DESK}")
    faults = await axe(page)

    await page.goto("/ui/system/jobs")
    await page.locator("a", has_text="whole").first.click()
    await expect(job).to_contain_text('{"subject":"order.*"}')
    await expect(result.locator("dd").first).to_have_text("3")
    await page.set_viewport_size({"width": PHONE, "height": 900})
    await page.emulate_media(color_scheme="dark")
    await look(page, f"backtest-job-dark-{PHONE}")
    assert [*faults, *await axe(page, LOOKS_ONLY)] == []
    assert not await is_too_wide(page)
    await service.storage.topics.delete(TopicName("whole"))
