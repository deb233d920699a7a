"""A source in the dashboard: created, tested, edited, paused, given a new URL, deleted."""

import hashlib
import hmac

import httpx
import pytest
from playwright.async_api import Page, expect

from storage.bootstrap import Storage
from storage.domain.errors import SourceNotFound
from storage.domain.names import QueueName, SourceName, StreamName
from storage.domain.sources.source import (
    InboundSource,
    SourceSpec,
    SourceTarget,
    WebhookProvider,
)
from storage.domain.streams.stream import StreamSpec
from tests.browser.conftest import Service, press
from tests.browser.observations import DESK, LOOKS_ONLY, PHONE, axe, is_too_wide, look
from tests.browser.test_queue_journeys import a_queue
from tests.conditions import eventually

pytestmark = pytest.mark.one_store

SECRET = "It's a Secret to Everybody"


async def a_source(storage: Storage, name: str, into: SourceTarget | None = None) -> InboundSource:
    """Create a source of that name, into a queue of the same name by default."""
    if into is None:
        await a_queue(storage, name, 0)
        into = SourceTarget(queue=name)
    spec = SourceSpec(
        provider=WebhookProvider.GITHUB, secrets=(SECRET,), into=into, headers=("X-GitHub-Event",)
    )
    return (await storage.sources.put(SourceName(name), spec)).definition


async def post(url: str, secret: str = SECRET) -> int:
    """Post an event as GitHub does; return the status."""
    digest = hmac.new(secret.encode(), b"{}", hashlib.sha256).hexdigest()
    async with httpx.AsyncClient() as http:
        headers = {"x-hub-signature-256": f"sha256={digest}", "x-github-event": "push"}
        return (await http.post(url, content=b"{}", headers=headers)).status_code


async def test_source_is_created_for_a_stream(page: Page, service: Service):
    await service.storage.catalog.put_stream(StreamName("payments-in"), StreamSpec())

    await page.goto("/ui/sources")
    await press(page, "New source")
    dialog = page.locator("dialog[open]")
    await dialog.locator("[name=source]").fill("payments-in")
    await dialog.locator("[name='webhook.provider']").select_option("stripe")
    await dialog.locator("[name='webhook.secrets']").fill("whsec_first\nwhsec_second")
    await dialog.locator("[name='into.stream']").fill("payments-in")
    await dialog.locator("[name='into.key']").fill("/data/object/customer")
    await dialog.locator("[name='webhook.headers']").fill("X-One\nX-Two")
    await press(page, "Create")

    await expect(page.locator("h1")).to_have_text("payments-in")
    await expect(page.get_by_text("stream:payments-in")).to_be_visible()
    spec = (await service.storage.sources.get_with_secrets(SourceName("payments-in"))).spec
    assert spec.secrets == ("whsec_first", "whsec_second")
    assert spec.into == SourceTarget(stream="payments-in", key="/data/object/customer")
    assert (spec.provider, spec.headers) == (WebhookProvider.STRIPE, ("X-One", "X-Two"))


async def test_fault_of_a_new_source_is_shown_in_its_dialog(page: Page, service: Service):
    await page.goto("/ui/sources")
    await press(page, "New source")
    dialog = page.locator("dialog[open]")
    await dialog.locator("[name=source]").fill("nowhere")
    await dialog.locator("[name='webhook.secrets']").fill("whsec_first")
    await dialog.locator("[name='into.queue']").fill("no-such-queue")
    await press(page, "Create")

    await expect(dialog).to_contain_text("does not exist")
    with pytest.raises(SourceNotFound):
        await service.storage.sources.get(SourceName("nowhere"))


async def test_test_event_reaches_the_target(page: Page, service: Service):
    storage = service.storage
    await a_source(storage, "tested")

    await page.goto("/ui/sources/tested")
    await press(page, "Send test")

    await expect(page.locator(".toast")).to_contain_text("accepted")
    await eventually(lambda: ready(storage, "tested"), 1)


async def ready(storage: Storage, queue: str) -> int:
    return (await storage.queues.stats(QueueName(queue))).ready


async def test_rejected_request_is_shown_with_its_reason(page: Page, service: Service):
    await a_source(service.storage, "forged")
    await page.goto("/ui/sources/forged")
    url = await url_of(page)

    assert await post(url, "another secret") == 401
    await page.reload()

    await expect(page.locator("tbody tr")).to_contain_text("signature_mismatch")
    await expect(page.locator(".title")).to_contain_text("Rejecting")


async def url_of(page: Page) -> str:
    """Return the URL that the page shows."""
    return (await page.get_by_text("/v1/sources/").first.inner_text()).strip()


async def test_source_is_edited_without_its_secrets(page: Page, service: Service):
    storage = service.storage
    before = await a_source(storage, "edited-in")

    await page.goto("/ui/sources/edited-in")
    await press(page, "Edit…")
    dialog = page.locator("dialog[open]")
    await expect(dialog.locator("[name='webhook.headers']")).to_have_value("X-GitHub-Event")
    await dialog.locator("[name='webhook.tolerance_seconds']").fill("60")
    await dialog.locator("[name=dedup_seconds]").fill("3600")
    await press(page, "Save")

    await expect(page.get_by_text("version 2")).to_be_visible()
    spec = (await storage.sources.get_with_secrets(before.name)).spec
    assert (spec.tolerance_ms, spec.dedup_ms) == (60_000, 3_600_000)
    assert (spec.secrets, spec.headers) == ((SECRET,), ("X-GitHub-Event",))


async def test_paused_source_refuses_events_until_resumed(page: Page, service: Service):
    await a_source(service.storage, "halted-in")

    await page.goto("/ui/sources/halted-in")
    url = await url_of(page)
    await press(page, "Pause source")
    await expect(page.locator(".title")).to_contain_text("Paused")
    paused = await post(url)
    await press(page, "Resume source")
    await expect(page.locator(".title")).to_contain_text("Active")

    assert (paused, await post(url)) == (503, 200)


async def test_rotated_url_replaces_the_one_that_is_shown(page: Page, service: Service):
    await a_source(service.storage, "leaked")

    await page.goto("/ui/sources/leaked")
    before = await url_of(page)
    await press(page, "Rotate URL…")
    await page.locator("dialog[open] [name=overlap_seconds]").fill("0")
    await press(page, "Rotate")
    await expect(page.get_by_text(before)).to_have_count(0)

    assert [await post(url) for url in (before, await url_of(page))] == [404, 200]


@pytest.mark.parametrize(
    ("path", "button"),
    [
        ("", "New source"),
        ("/shown", "Edit…"),
        ("/shown", "Rotate URL…"),
        ("/shown", "Delete…"),
    ],
)
async def test_dialog_is_accessible_in_both_themes(page: Page, service: Service, path, button):
    await a_source(service.storage, "shown")
    await page.goto(f"/ui/sources{path}")
    await press(page, button)
    name = f"source-dialog-{button.strip('…').lower().replace(' ', '-')}"
    await look(page, f"{name}-light-{DESK}")
    faults = await axe(page)

    await page.set_viewport_size({"width": PHONE, "height": 900})
    await page.emulate_media(color_scheme="dark")
    await look(page, f"{name}-dark-{PHONE}")

    assert [*faults, *await axe(page, LOOKS_ONLY)] == []
    assert not await is_too_wide(page)


async def test_deleting_source_requires_its_name(page: Page, service: Service):
    storage = service.storage
    source = await a_source(storage, "finished")

    await page.goto("/ui/sources/finished")
    await press(page, "Delete…")
    dialog = page.locator("dialog[open]")
    await expect(dialog).to_contain_text("Its target is kept")
    await expect(dialog.locator("button.danger")).to_be_disabled()
    await dialog.locator("[data-must]").fill("finished")
    await dialog.locator("button.danger").click()

    await expect(page).to_have_url(f"{service.open_url}/ui/sources")
    with pytest.raises(SourceNotFound):
        await storage.sources.get(source.name)
