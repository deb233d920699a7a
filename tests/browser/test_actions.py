"""Buttons of the dashboard that no longer journey covers, checked against the engines."""

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.async_api import Page, expect

from storage.domain.names import WebhookName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import DeadLetterTarget, QueueType
from storage.domain.webhooks import Source, SourceKind, WebhookSpec
from tests.browser.conftest import Service, press
from tests.browser.test_queue_journeys import LATE, a_queue, reject

pytestmark = pytest.mark.one_store


async def test_selected_messages_are_dropped(page: Page, service: Service):
    storage = service.storage
    queue = await a_queue(storage, "thinned", 4)

    await page.goto("/ui/queues/thinned/messages")
    for offset in (1, 2):
        await page.locator(f"#m-{offset} input[type=checkbox]").check()
    await page.locator(".selection").get_by_role("button", name="Drop…").click()
    await expect(page.locator("dialog[open]")).to_contain_text(
        "2 selected messages will be permanently deleted"
    )
    await page.locator("dialog[open] button.danger").click()

    await expect(page.locator(".toast")).to_have_text("2 of 2 dropped")
    await expect(page.locator("tbody tr")).to_have_count(2)
    left, _ = await storage.inspector.browse(queue)
    assert [message.offset for message in left] == [0, 3]


async def test_partly_failed_drop_is_reported(page: Page, service: Service):
    storage = service.storage
    queue = await a_queue(storage, "raced", 2)
    await reject(storage, queue, [LATE] * 2)

    await page.goto("/ui/queues/raced/dead-letters")
    for offset in (0, 1):
        await page.locator(f"#d-{offset} input[type=checkbox]").check()
    await page.locator(".selection").get_by_role("button", name="Drop…").click()
    await storage.inspector.drop(queue, "0")
    await page.locator("dialog[open] button.danger").click()

    await expect(page.locator(".toast-bad")).to_contain_text(re.compile("^1 of 2 dropped. .+"))
    assert (await storage.queues.stats(queue)).dead_lettered == 0


async def test_delivery_is_paused_and_resumed(page: Page, service: Service):
    storage = service.storage
    queue = await a_queue(storage, "halted", 1)

    await page.goto("/ui/queues/halted")
    await press(page, "Pause delivery")
    await expect(page.get_by_role("button", name="Resume delivery")).to_be_visible()
    paused = (await storage.catalog.fresh_queue(queue)).spec.paused
    await press(page, "Resume delivery")
    await expect(page.get_by_role("button", name="Pause delivery")).to_be_visible()

    assert paused
    assert not (await storage.catalog.fresh_queue(queue)).spec.paused


async def test_message_body_is_edited(page: Page, service: Service):
    storage = service.storage
    queue = await a_queue(storage, "mistyped", 1)

    await page.goto("/ui/queues/mistyped/messages/0")
    await press(page, "Edit body…")
    await expect(page.locator("dialog[open] textarea")).to_have_value(re.compile('"n": 0'))
    await page.locator("dialog[open] textarea").fill('{"n": 1}')
    await page.locator("dialog[open] button.primary").click()

    await expect(page.locator("pre.body")).to_contain_text('"n": 1')
    message = await storage.inspector.show(queue, "0")
    assert json.loads(message.body) == {"n": 1}


async def test_message_group_is_parked_and_resumed(page: Page, service: Service):
    storage = service.storage
    queue = await a_queue(storage, "held-back", type=QueueType.FIFO)
    await storage.queues.send(queue, [NewMessage(b"1", group="ada")])

    await page.goto("/ui/queues/held-back/groups")
    await press(page, "Pause a group…")
    await page.locator("dialog[open] [name=group]").fill("ada")
    await page.locator("dialog[open] [name=reason]").fill("wrong address")
    await page.locator("dialog[open] button.primary").click()
    await expect(page.locator("tbody tr")).to_contain_text("wrong address")
    [parked] = await storage.parked_groups.browse(queue)
    await press(page, "Resume")

    await expect(page.locator(".toast").last).to_have_text("Resumed 1 messages")
    assert (parked.group, parked.messages) == ("ada", 1)
    assert await storage.parked_groups.browse(queue) == []


async def test_dead_letters_are_moved_back_to_source(page: Page, service: Service):
    storage = service.storage
    graveyard = await a_queue(storage, "graveyard")
    source = await a_queue(
        storage,
        "mourned",
        3,
        dead_letters=DeadLetterTarget(queue="graveyard", receives_max=1),
    )
    for _ in range(2):  # the second receive exceeds the maximum
        await storage.queues.receive(source, messages_max=3, visibility_timeout_ms=0)

    await page.goto("/ui/queues/graveyard/dead-letters")
    await press(page, "Move 3 back…")
    await page.locator("dialog[open] button.primary").click()

    await expect(page.locator("tr", has_text="Completed")).to_have_count(1)
    assert (await storage.queues.stats(graveyard)).ready == 0
    assert (await storage.queues.stats(source)).ready == 3


async def test_namespace_is_created_and_deleted(page: Page, service: Service):
    namespaces = service.storage.namespaces

    await page.goto("/ui/namespaces")
    await press(page, "New namespace")
    await page.locator("dialog[open] [name=namespace]").fill("shortlived")
    await page.locator("dialog[open] [name=queues_max]").fill("7")
    await page.locator("dialog[open] button.primary").click()
    await expect(page.locator("#ns-shortlived")).to_be_visible()
    made = await namespaces.get("shortlived")
    await page.locator("#ns-shortlived").get_by_role("button", name="Delete…").click()
    await page.locator("dialog[open] [data-must]").fill("shortlived")
    await page.locator("dialog[open] button.danger").click()

    await expect(page.locator("#ns-shortlived")).to_have_count(0)
    assert made.quotas.queues_max == 7


async def test_audit_log_is_queried_by_operation_and_expanded(page: Page, service: Service):
    await a_queue(service.storage, "audit-expanded")
    await page.goto("/ui/queues/audit-expanded")
    await press(page, "Pause delivery")
    await press(page, "Resume delivery")
    await expect(page.get_by_role("button", name="Pause delivery")).to_be_visible()

    await page.goto("/ui/audit?about=queues/audit-expanded")
    changes = page.locator("td details ul")
    await press(page, "Expand all")
    await expect(changes).to_have_count(2)
    await expect(changes.first).to_be_visible()
    await expect(changes.last).to_be_visible()
    await press(page, "Expand all")
    await expect(changes.first).to_be_hidden()
    await page.get_by_role("link", name="resume_queue").click()

    operations = page.locator("tr[data-row] td:nth-child(4)")
    assert set(await operations.all_inner_texts()) == {"resume_queue"}


async def test_audit_log_is_exported_as_ndjson(page: Page, service: Service, tmp_path: Path):
    await a_queue(service.storage, "audited")
    await page.goto("/ui/queues/audited")
    await press(page, "Pause delivery")
    await expect(page.get_by_role("button", name="Resume delivery")).to_be_visible()

    await page.goto("/ui/audit?about=queues/audited")
    async with page.expect_download() as begun:
        await press(page, "Export NDJSON")
    await (await begun.value).save_as(tmp_path / "audit.ndjson")

    lines = [json.loads(line) for line in (tmp_path / "audit.ndjson").read_text().splitlines()]
    assert lines
    assert {line["action"] for line in lines} == {"queue:manage"}


async def test_webhook_is_edited(page: Page, service: Service):
    """A webhook could be created, and after that not be changed."""
    name = WebhookName("edited")
    await a_queue(service.storage, "edited-source", 0)
    source = Source(SourceKind.QUEUE, "edited-source")
    spec = WebhookSpec(
        source=source,
        url="http://127.0.0.1:9/a",
        headers=(("Authorization", "x"),),
        retry_delays_ms=(500, 60_000),
    )
    await service.storage.webhooks.put(name, spec)

    await page.goto("/ui/webhooks/edited")
    await press(page, "Edit…")
    dialog = page.locator("dialog[open]")
    await dialog.locator("[name=url]").fill("http://127.0.0.1:9/b")
    await press(page, "Save")

    await expect(page.get_by_text("http://127.0.0.1:9/b").first).to_be_visible()
    stored = (await service.storage.webhooks.get(name)).spec
    assert stored.url == "http://127.0.0.1:9/b"
    assert [header for header, _ in stored.headers or ()] == ["Authorization"]
    assert replace(stored, headers=None) == replace(spec, url=stored.url, headers=None)
