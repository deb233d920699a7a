"""Journeys with queues and keys: find a stuck queue, inspect, redrive, purge, rotate."""

import json
import re

import pytest
from playwright.async_api import Page, expect

from storage.bootstrap import Storage
from storage.domain.access.permissions import Role
from storage.domain.names import QueueName
from storage.domain.queues.consumer import ConsumerProtocol, queue_consumer
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.queue import QueueSpec
from tests.browser.conftest import Service, log_in, press
from tests.browser.observations import Complaints, look

pytestmark = pytest.mark.one_store

DECLINED, LATE = "card declined", "no answer after 30 s"


async def a_queue(storage: Storage, name: str, count: int = 0, **spec: object) -> QueueName:
    """Create a queue with the given number of messages."""
    made = QueueName(name)
    await storage.catalog.put_queue(made, QueueSpec(**spec))  # type: ignore[arg-type]
    if count:
        bodies = [json.dumps({"n": number}).encode() for number in range(count)]
        await storage.queues.send(made, [NewMessage(body) for body in bodies])
    return made


async def reject(storage: Storage, queue: QueueName, reasons: list[str]) -> None:
    """Reject the first messages, each with its reason."""
    messages = await storage.queues.receive(queue, messages_max=len(reasons))
    await storage.queues.settle(
        queue,
        [
            Settlement(message.receipt_handle, SettleAction.REJECT, reason=reason)
            for message, reason in zip(messages, reasons, strict=True)
        ],
    )


async def test_stuck_queue_is_linked_from_overview(page: Page, service: Service):
    await service.storage.time_series.sample()

    await page.goto("/ui")
    await page.get_by_text("queues without a consumer").click()
    await page.get_by_role("link", name="No consumer receives from orders", exact=True).click()

    await expect(page).to_have_url(re.compile("/ui/queues/orders/messages$"))
    await expect(page.get_by_role("row").nth(1)).to_contain_text("Ready")


async def test_consumers_are_shown_from_the_message_they_received(page: Page, service: Service):
    storage = service.storage
    queue = await a_queue(storage, "consumed", 3)
    worker = queue_consumer("order-worker", ConsumerProtocol.SQS, "192.0.2.9", b"Boto3/1.40")
    await storage.queues.receive(queue, messages_max=2, consumer=worker)

    await page.goto("/ui/queues/consumed/messages/0")
    await expect(page.get_by_text("order-worker at 192.0.2.9 · Boto3/1.40")).to_be_visible()
    await page.get_by_role("link", name="order-worker").click()
    row = page.get_by_role("row").nth(1)

    await expect(page).to_have_url(re.compile("/ui/queues/consumed/consumers$"))
    await expect(row.get_by_role("cell")).to_have_text(
        [
            "SQS",
            "192.0.2.9",
            "Boto3/1.40",
            re.compile(r"\d"),
            re.compile(r"\d"),
            "0",
            "2",
            re.compile(".+"),
        ]
    )


async def test_queue_is_found_among_ten_thousand(page: Page, service: Service):
    await page.goto("/ui/queues?ns=crowd")
    await expect(page.locator(".pager")).to_contain_text(re.compile("1.50 of 10.?000"))

    await page.keyboard.press("/")
    await page.keyboard.type("09998")

    await expect(page.locator("tbody tr")).to_have_count(1)
    await expect(page).to_have_url(re.compile("q=09998"))


async def test_dead_letter_is_inspected_and_redriven(
    page: Page, service: Service, complaints: Complaints
):
    storage = service.storage
    queue = await a_queue(storage, "refused-cards", 6)
    await reject(storage, queue, [DECLINED] * 4 + [LATE] * 2)

    await page.goto("/ui/queues/refused-cards/dead-letters")
    await page.get_by_role("link", name=DECLINED).click()
    await expect(page.locator("tr[id^=d-]")).to_have_count(4)
    await page.locator("tr[id^=d-] a").first.click()
    await expect(page.locator("#message-body")).to_contain_text('"n": 0')
    await look(page, "journey-dead-letter")
    await press(page, "Redrive")

    await expect(page).to_have_url(re.compile("/dead-letters$"))
    stats = await storage.queues.stats(queue)
    assert (stats.dead_lettered, stats.ready) == (5, 1)
    assert complaints == []


async def test_dead_letters_of_one_reason_are_redriven(page: Page, service: Service):
    storage = service.storage
    queue = await a_queue(storage, "refused-again", 6)
    await reject(storage, queue, [DECLINED] * 4 + [LATE] * 2)

    await page.goto("/ui/queues/refused-again/dead-letters")
    await page.locator("tr", has_text=DECLINED).get_by_role("button", name="Redrive…").click()
    await expect(page.locator("dialog[open]")).to_contain_text(DECLINED)
    await page.locator("dialog[open] input[name=per_second]").fill("100")
    await page.locator("dialog[open] button.primary").click()

    await expect(page.get_by_role("row", name=re.compile("Redrive of"))).to_contain_text("4")
    await expect(page.locator("tr", has_text="Completed")).to_have_count(1)
    assert (await storage.queues.stats(queue)).dead_lettered == 2


async def test_selected_dead_letters_are_redriven(page: Page, service: Service):
    storage = service.storage
    queue = await a_queue(storage, "picked", 3)
    await reject(storage, queue, [LATE] * 3)

    await page.goto("/ui/queues/picked/dead-letters")
    await page.keyboard.press("j")
    await page.keyboard.press("x")
    await page.locator(".selection").get_by_role("button", name="Redrive…").click()
    await expect(page.locator("dialog[open] [data-selected]")).to_have_text("1")
    await page.locator("dialog[open] button.primary").click()

    await expect(page.locator(".toast")).to_contain_text("1 redriven")
    assert (await storage.queues.stats(queue)).dead_lettered == 2


async def test_purge_shows_count_and_requires_name(page: Page, service: Service):
    storage = service.storage
    queue = await a_queue(storage, "to-be-purged", 7)

    await page.goto("/ui/queues/to-be-purged")
    await press(page, "Purge…")
    element = page.locator("dialog[open]")
    purge = element.get_by_role("button", name="Purge")
    await expect(element).to_contain_text("7 ready messages")
    await expect(purge).to_be_disabled()
    await element.locator("[data-must]").fill("to-be-purge")
    await expect(purge).to_be_disabled()
    await element.locator("[data-must]").fill("to-be-purged")
    await look(page, "journey-purge")
    await purge.click()

    await expect(page.locator(".toast")).to_contain_text("7 messages purged")
    await expect(page.locator(".tile", has_text="Ready").first).to_contain_text("0")
    assert (await storage.queues.stats(queue)).ready == 0


async def test_message_is_sent_with_headers(page: Page, service: Service):
    queue = await a_queue(service.storage, "sent-to")

    await page.goto("/ui/queues/sent-to/messages")
    await press(page, "Send")
    await page.locator("dialog[open] [name=body]").fill('{"order": 7}')
    await page.locator("dialog[open] [name=headers]").fill("source=web")
    await page.locator("dialog[open] button.primary").click()

    await expect(page.locator("tbody tr")).to_contain_text('{"order":7}')
    [message], _ = await service.storage.inspector.browse(queue)
    assert message.headers == (("source", "", b"web"),)


async def test_settings_show_difference_and_reject_stale_version(page: Page, service: Service):
    storage = service.storage
    queue = await a_queue(storage, "set-anew")

    await page.goto("/ui/queues/set-anew/settings")
    await page.get_by_label("Attempts").fill("3")
    await expect(page.locator("[data-diff]")).to_contain_text("10")
    await storage.catalog.put_queue(queue, QueueSpec(delay_ms=1000))
    await press(page, "Save")
    await expect(page.locator(".changes .trouble")).to_be_visible()

    await page.reload()
    await page.get_by_label("Attempts").fill("3")
    await press(page, "Save")
    await expect(page.get_by_label("Attempts")).to_have_value("3")
    await expect(page.locator("[data-diff]")).to_contain_text("No changes")
    spec = (await storage.catalog.fresh_queue(queue)).spec
    assert (spec.attempts_max, spec.delay_ms) == (3, 1000)


async def test_key_is_rotated_and_shown_once(secured_service: Page, service: Service):
    admin = await service.key(Role.ADMIN)
    await secured_service.goto(f"/ui/keys/{admin.id}")
    await log_in(secured_service, "msk_nonsense")
    await expect(secured_service.locator(".trouble")).to_be_visible()
    await log_in(secured_service, admin.token)

    await press(secured_service, "Rotate…")
    await secured_service.locator("dialog[open] button.primary").click()
    shown = secured_service.locator("#secret code[data-show=secret]")
    await expect(shown).to_have_text(re.compile("^msk_"))
    word = await shown.text_content()
    async with secured_service.expect_navigation():
        await press(secured_service, "Done")

    assert word
    assert word not in await secured_service.content()
    assert await service.storage.credentials.authenticate(word) is not None


async def test_palette_opens_resource_from_keyboard(page: Page):
    await page.goto("/ui/system")

    await page.keyboard.press("Control+k")
    await page.keyboard.type("invoi")
    await expect(page.locator("#palette-found [role=option]").first).to_contain_text("invoices")
    await page.keyboard.press("Enter")

    await expect(page).to_have_url(re.compile("/ui/queues/invoices$"))
    await page.wait_for_load_state("load")  # its scripts are loaded
    await page.keyboard.press("g")
    await page.keyboard.press("s")
    await expect(page).to_have_url(re.compile("/ui/streams$"))


async def test_preferences_are_remembered(page: Page):
    await page.goto("/ui/queues/orders")
    await page.locator("[data-range]").select_option("86400")
    await page.locator("select[data-times]").select_option("utc")
    await press(page, "Toggle light or dark theme")
    await expect(page).to_have_url(re.compile("range=86400"))

    await page.goto("/ui/queues/emails/messages")

    await expect(page.locator("[data-range]")).to_have_value("86400")
    await expect(page.locator("tbody time").first).to_contain_text("UTC")
    assert await page.evaluate("document.documentElement.dataset.theme") == "dark"


async def test_chart_has_a_table_that_begins_with_the_first_sample(page: Page, service: Service):
    await service.storage.time_series.sample()
    await page.goto("/ui/queues/orders?range=900")

    await page.locator("#chart-depth summary").click()

    table = "#chart-depth .as-table table:last-child"
    await expect(page.locator("#chart-depth canvas")).to_be_visible()
    await expect(page.locator(f"{table} thead th")).to_have_count(5)
    rows = page.locator(f"{table} tbody tr")
    await expect(rows.last.get_by_role("cell").nth(1)).to_have_text("40")
    assert await rows.count() < 90


async def test_chart_shows_last_value_and_range_without_pointing(page: Page, service: Service):
    await service.storage.time_series.sample()
    await page.goto("/ui/queues/orders")
    ready = page.locator("#chart-depth .legend li").nth(0)

    await expect(ready).to_have_text(re.compile(r"Ready 40 "))
    await page.locator("#chart-depth .u-over").hover()

    await expect(page.locator("#chart-depth .legend-time")).to_have_text(re.compile(r"\d\d:\d\d"))
    await expect(page.locator("#chart-size-in-the-hot-store .legend-time")).to_have_text(
        re.compile(r"\d\d:\d\d")
    )


async def test_chart_marks_what_was_done(page: Page, service: Service):
    await a_queue(service.storage, "marked", 3)
    await service.storage.time_series.sample()
    await page.goto("/ui/queues/marked")
    await press(page, "Pause delivery")
    await expect(page.get_by_role("button", name="Resume delivery")).to_be_visible()
    await page.goto("/ui/queues/marked")
    await page.locator("#chart-depth summary").click()

    marks = page.locator("#chart-depth .marks tbody tr")
    await expect(marks.filter(has_text="pause queue, by")).to_have_count(1)


async def test_attempts_show_consumer_and_stack_trace(page: Page, service: Service):
    storage = service.storage
    queue = await a_queue(storage, "traced", 1, history=True)
    worker = queue_consumer("order-worker", ConsumerProtocol.SQS, "192.0.2.9", b"Boto3/1.40")
    [message] = await storage.queues.receive(queue, consumer=worker)
    trace = "Traceback (most recent call last):\n  <b>worker.py</b>, line 7"
    verdict = Settlement(
        message.receipt_handle, SettleAction.NACK, reason="card declined", details=trace
    )
    await storage.queues.settle(queue, [verdict])

    await page.goto("/ui/queues/traced/messages/0")
    row = page.locator("#a-1")
    await expect(row).to_contain_text("order-worker 192.0.2.9")
    await expect(row).to_contain_text("Nacked")
    await row.get_by_text("card declined").click()

    await expect(row.locator("pre")).to_have_text(trace)


async def test_history_of_deleted_message_is_found_by_id(page: Page, service: Service):
    storage = service.storage
    queue = await a_queue(storage, "remembered", 1, history=True)
    [message] = await storage.queues.receive(queue)
    await storage.queues.settle(queue, [Settlement(message.receipt_handle, SettleAction.ACK)])

    await page.goto("/ui/queues/remembered/messages")
    await page.get_by_label("Search messages").fill(message.message_id)
    await page.keyboard.press("Enter")
    await page.get_by_role("link", name="Show the history").click()

    rows = page.locator("tr[id^=h-] th")
    await expect(rows).to_have_text(["Sent", "Delivered", "Acknowledged"])
    await expect(page.get_by_text("Deleted", exact=True)).to_be_visible()
