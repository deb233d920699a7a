"""Journeys in lists of messages and records: filter, columns, rows that open, neighbours."""

import re

import pytest
from playwright.async_api import Page, expect

from api.admin.display_formats import NOTHING
from storage.bootstrap import Storage
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.queue import DeadLetterTarget, QueueSpec
from storage.domain.streams.stream import StreamSpec
from tests.browser.conftest import Service, press
from tests.browser.observations import PHONE, Complaints, axe, look
from tests.conditions import eventually

pytestmark = pytest.mark.one_store

PATH = "/ui/queues/browsed/messages"


async def a_queue_of_orders(
    service: Service, name: str = "browsed", dead_letters: DeadLetterTarget | None = None
) -> QueueName:
    """Create a queue with orders of two customers, if it does not exist."""
    queue, storage = QueueName(name), service.storage
    spec = QueueSpec(history=True, dead_letters=dead_letters)
    if not (await storage.catalog.put_queue(queue, spec)).created:
        return queue
    orders = [
        NewMessage(
            b'{"customer": {"id": %d}, "total": %d, "note": "<b>n</b>"}' % (n % 2, n),
            (("source", "", b"web" if n < 3 else b"api"),),
        )
        for n in range(6)
    ]
    await storage.queues.send(queue, orders)
    return queue


async def test_messages_are_filtered_by_field_and_header(page: Page, service: Service):
    await a_queue_of_orders(service)
    await page.goto(PATH)
    rows = page.locator("tr[id^=m-] th a")

    await page.get_by_text("Filter by header, field or time").click()
    await page.get_by_label("Body field").fill("/customer/id=1")
    await page.get_by_label("Header", exact=True).fill("source:api")
    await page.get_by_label("Sent from").fill("1h")
    await page.keyboard.press("Enter")

    await expect(rows).to_have_text(["3", "5"])
    await expect(page.get_by_label("Body field")).to_have_value("/customer/id=1")
    await page.get_by_label("Body field").fill("customer")
    await page.keyboard.press("Enter")
    await expect(page.locator(".notice-bad")).to_contain_text("JSON Pointer")


async def test_columns_of_fields_are_chosen_and_linked(page: Page, service: Service):
    await a_queue_of_orders(service)
    await page.goto(PATH)

    for field in ("/customer/id", "/total"):
        await page.get_by_text("Columns").click()
        await page.get_by_role("link", name=field).click()
    await page.goto(page.url)

    heads = page.locator("thead th.mono")
    await expect(heads).to_have_text(["/customer/id", "/total"])
    await expect(page.locator("#m-3 td.clip")).to_have_text(["1", "3"])
    await look(page, "journey-columns")


async def test_row_opens_in_place_by_keyboard(page: Page, service: Service, complaints: Complaints):
    queue = await a_queue_of_orders(service, "opened")
    [message] = await service.storage.queues.receive(queue)
    verdict = Settlement(
        message.receipt_handle, SettleAction.NACK, delay_ms=0, reason="late", details="line 7"
    )
    await service.storage.queues.settle(queue, [verdict])
    await page.goto("/ui/queues/opened/messages")

    await page.keyboard.press("j")
    await page.keyboard.press("o")
    opened = page.locator("tr.expansion")
    await expect(opened.locator("pre.body")).to_contain_text('"note": "<b>n</b>"')
    await expect(opened).to_contain_text("source")
    await expect(opened).to_contain_text("late")
    await look(page, "journey-row-opened")
    assert await axe(page) == []
    await page.keyboard.press("o")

    await expect(opened).to_have_count(0)
    assert complaints == []


async def test_neighbours_are_opened_by_keyboard(page: Page, service: Service):
    await a_queue_of_orders(service)
    await page.goto(f"{PATH}/2")

    await page.keyboard.press("j")
    await expect(page).to_have_url(re.compile("/messages/3$"))
    await page.wait_for_load_state("load")
    await page.keyboard.press("k")

    await expect(page.get_by_role("heading", name="Message 2")).to_be_visible()


async def test_neighbours_are_those_of_the_filtered_list(page: Page, service: Service):
    await a_queue_of_orders(service)
    await page.goto(f"{PATH}?body=/customer/id=1")

    await page.locator("#m-3 th a").click()
    await page.get_by_role("link", name="Next message").click()
    await expect(page.get_by_role("heading", name="Message 5")).to_be_visible()
    await expect(page.get_by_role("link", name="Next message")).to_have_count(0)
    await page.get_by_role("link", name="Previous message").click()

    await expect(page.get_by_role("heading", name="Message 3")).to_be_visible()


async def test_moved_message_is_opened_and_dropped(page: Page, service: Service):
    """Its id, that of the queue that it came from, is not found in its new queue."""
    storage, target = service.storage, QueueName("moved-to")
    await storage.catalog.put_queue(target, QueueSpec())
    source = await a_queue_of_orders(
        service, "moved-from", dead_letters=DeadLetterTarget("moved-to", 1)
    )
    for _ in range(2):
        received = await storage.queues.receive(source, messages_max=1)
        await storage.queues.release(source, received)
    await eventually(lambda: _ready(storage, target), 1)

    await page.goto("/ui/queues/moved-to/messages")
    await page.locator("tr[id^=m-] th a").click()
    await expect(page.locator("#message-body")).to_contain_text('"total": 0')
    await press(page, "Drop…")
    await page.locator("dialog[open] button.danger").click()
    await expect(page).to_have_url(re.compile("/messages$"))

    assert await _ready(storage, target) == 0


async def _ready(storage: Storage, queue: QueueName) -> int:
    return (await storage.queues.stats(queue)).ready


async def test_records_are_filtered_opened_and_followed_by_field(
    page: Page, service: Service, complaints: Complaints
):
    stream, storage = StreamName("fields"), service.storage
    await storage.catalog.put_stream(stream, StreamSpec())
    await storage.streams.append(
        stream,
        [Record(b'{"n": %d}' % (n % 3), "", (("zone", "", b"eu"),)) for n in range(9)],
    )
    await page.goto("/ui/streams/fields/browse?at=earliest&body=/n=2&header=zone:eu&columns=/n")

    await expect(page.locator("tr[data-row] td.n a")).to_have_text(["2", "5", "8"])
    await page.get_by_role("button", name="Preview record 0:5").click()
    await expect(page.locator("tr.expansion pre")).to_contain_text('"n": 2')
    await page.locator("#r-0-5 a").click()
    await page.get_by_role("link", name="Next record").click()
    await expect(page.get_by_role("heading", name="Shard 0, offset 6")).to_be_visible()

    await page.goto("/ui/streams/fields/browse?at=live&body=/n=2&columns=/n,/none")
    await expect(page.locator("[data-tail-state]")).to_contain_text("Live")
    await storage.streams.append(stream, [Record(b'{"n": 1}'), Record(b'{"n": 2}')])
    await expect(page.locator("#tail tr")).to_have_count(1)
    await expect(page.locator("#tail td.mono.clip:not(.wide)")).to_have_text(
        [NOTHING, "2", NOTHING]
    )
    assert complaints == []


async def test_rows_are_cards_on_a_phone(page: Page, service: Service):
    await a_queue_of_orders(service)
    await page.set_viewport_size({"width": PHONE, "height": 844})
    await page.goto(f"{PATH}?columns=/total")
    row = page.locator("#m-3")

    labels = await row.locator("td[data-label]:not([data-label=''])").evaluate_all(
        "cells => cells.map(cell => [cell.dataset.label, getComputedStyle(cell).display])"
    )
    await row.get_by_role("button", name="Preview message 3").click()
    opened = page.locator("tr.expansion pre.body")
    await expect(opened).to_contain_text('"total": 3')

    assert ["/total", "flex"] in labels
    assert await opened.evaluate("pre => pre.getBoundingClientRect().right <= innerWidth")
    await look(page, "journey-cards")
