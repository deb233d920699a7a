"""Journeys in the list of queues: the same action for several of them."""

import pytest
from playwright.async_api import Locator, Page, expect

from storage.bootstrap import Storage
from storage.domain.names import QueueName
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.queue import QueueSpec
from tests.browser.conftest import Service, press
from tests.browser.observations import Complaints, axe, look

pytestmark = pytest.mark.one_store


async def queues(storage: Storage, prefix: str, *counts: int) -> list[QueueName]:
    """Create a queue for each number of messages."""
    names = [QueueName(f"{prefix}-{count}") for count in counts]
    for name, count in zip(names, counts, strict=True):
        await storage.catalog.put_queue(name, QueueSpec())
        if count:
            await storage.queues.send(name, [NewMessage(b"{}") for _ in range(count)])
    return names


async def opened(page: Page, prefix: str, action: str) -> Locator:
    """Select all queues with the prefix, and open the dialog of an action."""
    await page.goto(f"/ui/queues?q={prefix}")
    await page.get_by_label("Select all on this page").check()
    await press(page, action)
    return page.locator("dialog[open]")


async def test_queues_are_purged_apart_from_each_other(
    page: Page, service: Service, complaints: Complaints
):
    """A queue that was deleted meanwhile stops no other."""
    storage = service.storage
    many, gone, few = await queues(storage, "bulk-purge", 5, 4, 2)
    dialog = await opened(page, "bulk-purge", "Purge…")
    purge = dialog.get_by_role("button", name="Purge")

    await expect(dialog).to_contain_text("11 messages in 3 queues")
    await expect(purge).to_be_disabled()
    await storage.catalog.delete_queue(gone)
    await dialog.locator("[data-must]").fill("purge 3 queues")
    faults = await axe(page)
    await purge.click()

    rows = dialog.locator("tbody tr")
    await expect(rows.nth(0)).to_contain_text("2 purged")
    await expect(rows.nth(1)).to_contain_text("does not exist")
    await expect(rows.nth(2)).to_contain_text("5 purged")
    await look(page, "journey-bulk-purge")
    await press(page, "Close")
    await expect(page.locator(".selection")).to_be_hidden()
    assert [(await storage.queues.stats(name)).ready for name in (many, few)] == [0, 0]
    assert faults == []
    assert [one for one in complaints if "404" not in one] == []


async def test_queues_are_paused_and_resumed_together(page: Page, service: Service):
    storage = service.storage
    names = await queues(storage, "bulk-pause", 1, 3)

    dialog = await opened(page, "bulk-pause", "Pause…")
    await expect(dialog).to_contain_text("4 messages in 2 queues")
    await dialog.get_by_role("button", name="Pause").click()
    await expect(dialog.locator("tbody tr", has_text="Paused")).to_have_count(2)
    await press(page, "Close")
    await expect(page.locator("tbody .badge-warn", has_text="Paused")).to_have_count(2)
    dialog = await opened(page, "bulk-pause", "Resume…")
    await dialog.get_by_role("button", name="Resume").click()
    await expect(dialog.locator("tbody tr", has_text="Resumed")).to_have_count(2)

    assert not any([(await storage.catalog.fresh_queue(name)).spec.paused for name in names])


async def test_dead_letters_of_queues_are_redriven_together(page: Page, service: Service):
    storage = service.storage
    names = await queues(storage, "bulk-dead", 1, 2)
    for name in names:
        received = await storage.queues.receive(name, messages_max=9)
        rejected = [Settlement(one.receipt_handle, SettleAction.REJECT) for one in received]
        await storage.queues.settle(name, rejected)

    dialog = await opened(page, "bulk-dead", "Redrive…")
    await expect(dialog).to_contain_text("3 messages in 2 queues")
    await dialog.get_by_role("button", name="Redrive").click()

    await expect(dialog.locator("tbody tr", has_text="Started: ")).to_have_count(2)
    await expect(dialog.locator("tbody tr").nth(1)).to_contain_text("Started: 2")
