"""Journeys with webhooks: from a delivery to its message and back, resends in bulk, settings."""

import re

import pytest
from msgspec.structs import replace
from playwright.async_api import Page, expect

from storage.bootstrap import Storage
from storage.domain.access.oauth import OAuthClient
from storage.domain.groups.group import GroupSpec
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, QueueName, StreamName, WebhookName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec
from storage.domain.webhooks import (
    Attempt,
    AttemptOutcome,
    DeliveryLogEntry,
    DeliveryStatus,
    LoggedDelivery,
    PayloadLocation,
    Source,
    Webhook,
    WebhookSpec,
    record_event_id,
)
from tests.browser.conftest import Service, press
from tests.browser.observations import Complaints, look
from tests.webhook_receiver import respond_with, running_receiver

pytestmark = pytest.mark.one_store


async def a_webhook(storage: Storage, source: str, url: str = "http://127.0.0.1:9/") -> Webhook:
    """Create a webhook that no deliverer serves, named as its source."""
    name = WebhookName(source.partition(":")[2])
    spec = WebhookSpec(source=Source.of(source), url=url)
    return (await storage.webhooks.put(name, spec))[0]


async def a_queue(storage: Storage, name: str, count: int) -> list[str]:
    """Create a queue with messages, and return their ids."""
    queue = QueueName(name)
    await storage.catalog.put_queue(queue, QueueSpec())
    if not count:
        return []
    sent = await storage.queues.send(queue, [NewMessage(b'{"n": %d}' % n) for n in range(count)])
    return [one.message_id for one in sent]


async def log_failure(
    storage: Storage, webhook: Webhook, event_id: str, location: PayloadLocation, status: int = 503
) -> None:
    """Log a failed delivery."""
    attempt = Attempt(
        outcome=AttemptOutcome.SERVER_ERROR,
        at_ms=location.offset,
        duration_ms=7,
        status=status,
        error=str(status),
        response="<b>no room</b>",
    )
    entry = DeliveryLogEntry(
        event_id=event_id,
        status=DeliveryStatus.FAILED,
        attempts=1,
        attempt=attempt,
        at_ms=webhook.created_at_ms + location.offset,
        location=location,
    )
    await storage.deliveries.log([LoggedDelivery(webhook.webhook_id, webhook.spec.log_ms, entry)])


async def test_delivery_leads_to_its_message_and_back(
    page: Page, service: Service, complaints: Complaints
):
    storage = service.storage
    [message_id] = await a_queue(storage, "hooked", 1)
    webhook = await a_webhook(storage, "queue:hooked")
    await log_failure(storage, webhook, message_id, PayloadLocation(0))

    await page.goto("/ui/webhooks/hooked")
    await page.get_by_role("link", name="message 0").click()
    await expect(page.locator("#message-body")).to_contain_text('"n": 0')
    await page.get_by_role("link", name="hooked", exact=True).last.click()

    await expect(page.locator("#payload")).to_contain_text('"n": 0')
    response = page.get_by_label("Last response")
    await expect(response.locator("pre")).to_have_text("<b>no room</b>")
    await expect(response).to_contain_text("503")
    await look(page, "journey-delivery")
    assert complaints == []


async def test_record_lists_its_deliveries(page: Page, service: Service):
    storage, stream = service.storage, StreamName("hooked-records")
    await storage.catalog.put_stream(stream, StreamSpec(shards=1))
    await storage.streams.append(stream, [Record(b'{"n": 0}')])
    await storage.groups.put(GroupName("hooked-group"), GroupSpec(stream=stream.name))
    webhook = await a_webhook(storage, "group:hooked-group")
    event_id = record_event_id((await storage.catalog.stream(stream)).stream_id, 0, 0)
    await log_failure(storage, webhook, event_id, PayloadLocation(0, 0))

    await page.goto("/ui/webhooks/hooked-group")
    await page.get_by_role("link", name="record 0:0").click()
    await page.get_by_role("link", name="hooked-group").click()

    await expect(page.locator("#payload")).to_contain_text('"n": 0')


async def test_failed_deliveries_are_counted_and_resent(page: Page, service: Service):
    storage = service.storage
    ids = await a_queue(storage, "resent", 4)
    async with running_receiver() as receiver:
        webhook = await a_webhook(storage, "queue:resent", receiver.url)
        for offset, message_id in enumerate(ids):
            status = 500 if offset == 1 else 503
            await log_failure(storage, webhook, message_id, PayloadLocation(offset), status)
        receiver.behaviours = [respond_with(500)]

        await page.goto("/ui/webhooks/resent?code=503")
        await press(page, "Resend several…")
        element = page.locator("dialog[open]")
        await expect(element.get_by_role("button", name="Resend")).to_be_disabled()
        await press(page, "Count")
        await expect(element).to_contain_text("3 deliveries would be sent again.")
        await element.get_by_role("button", name="Resend").click()

        await expect(page.locator(".toast")).to_contain_text("2 delivered, 1 failed")
        assert sorted(got.event_id for got in receiver.requests) == sorted([ids[0], *ids[2:]])


async def test_deliveries_are_filtered(page: Page, service: Service):
    await page.goto("/ui/webhooks/crm?status=failed")
    rows = page.locator("tr[id^=e-]")
    await expect(rows).to_have_count(8)

    await page.get_by_label("Outcome of the last attempt").select_option("timeout")
    await expect(page.get_by_text("No delivery matches.")).to_be_visible()

    await expect(page).to_have_url(re.compile("status=failed.*outcome=timeout"))


async def test_webhook_is_paused_edited_and_resumed(page: Page, service: Service):
    storage = service.storage
    await a_queue(storage, "retimed", 0)
    await a_webhook(storage, "queue:retimed")

    await page.goto("/ui/webhooks/retimed")
    await press(page, "Pause deliveries")
    await expect(page.get_by_role("button", name="Resume deliveries")).to_be_visible()
    await press(page, "Edit…")
    await page.locator("dialog[open] [name=timeout_seconds]").fill("7")
    await page.locator("dialog[open] button.primary").click()
    await expect(page.get_by_text("7 s", exact=True)).to_be_visible()
    await press(page, "Resume deliveries")
    await expect(page.get_by_role("button", name="Pause deliveries")).to_be_visible()

    spec = (await storage.webhooks.get(WebhookName("retimed"))).spec
    assert (spec.timeout_ms, spec.paused) == (7_000, False)


async def test_oauth_client_is_set_kept_and_removed(page: Page, service: Service):
    storage, name = service.storage, WebhookName("authorized")
    await a_queue(storage, "authorized", 0)
    await a_webhook(storage, "queue:authorized")

    async def save(**fields: str) -> OAuthClient | None:
        await page.goto("/ui/webhooks/authorized")
        await press(page, "Edit…")
        if await page.locator("dialog[open] details:not([open])").count():
            await page.locator("dialog[open] summary").click()
        for field, text in fields.items():
            await page.locator(f"dialog[open] [name='credentials.oauth.{field}']").fill(text)
        await page.locator("dialog[open] button.primary").click()
        await expect(page.locator("dialog[open]")).to_have_count(0)
        credentials = (await storage.webhooks.opened(name)).webhook.spec.credentials
        return None if credentials is None else credentials.oauth

    url = "https://login.example/token"
    made = await save(
        token_url=url, client_id="shop", client_secret="opensesame", parameters="audience=a=b"
    )
    assert made == OAuthClient(
        token_url=url, client_id="shop", client_secret="opensesame", parameters={"audience": "a=b"}
    )
    await look(page, "webhook-oauth")
    assert "opensesame" not in await page.content()
    assert await save(scope="read") == replace(made, scope="read")
    empty = dict.fromkeys(("token_url", "client_id", "scope", "parameters"), "")
    assert await save(**empty) is None
