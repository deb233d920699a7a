"""Settings in forms: durations, defaults, marks, and the bar that saves them."""

import pytest
from playwright.async_api import Page, expect

from storage.domain.names import QueueName
from storage.domain.queues.queue import QueueSpec
from tests.browser.conftest import Service, press
from tests.browser.observations import DESK, PHONE, Complaints, look
from tests.unit.cli.test_parsers import INVALID_DURATIONS, VALID_DURATIONS

pytestmark = pytest.mark.one_store

COVERED = """() => {
  const bar = document.querySelector(".changes");
  const covered = [];
  for (const field of document.querySelectorAll("form[data-settings] :is(input, select, textarea)")) {
    field.focus();
    const { bottom, top } = field.getBoundingClientRect();
    if (bottom > bar.getBoundingClientRect().top || top < 0) covered.push(field.name);
  }
  return covered;
}"""
"""Names of the fields that the bar covers while they have the focus."""


async def test_settings_take_and_show_durations(
    page: Page, service: Service, complaints: Complaints
):
    queue, catalog = QueueName("durations"), service.storage.catalog
    await catalog.put_queue(queue, QueueSpec(visibility_timeout_ms=90_000))
    await page.goto("/ui/queues/durations/settings")
    visibility = page.get_by_label("Visibility timeout")

    await expect(visibility).to_have_value("90s")
    await expect(page.locator(".field.changed")).to_have_count(1)
    await expect(page.locator(".field.changed")).to_contain_text("default 30s")
    await expect(page.locator("[name=retention_seconds]")).to_have_value("4d")
    await visibility.fill("1h30m")
    await page.locator("form[data-settings] [name=ttl_seconds]").fill("2d")
    await expect(page.locator("[data-diff]")).to_contain_text("Visibility timeout90s→1h30m")
    await press(page, "Save")
    await expect(page.locator("[data-diff]")).to_contain_text("No changes.")

    spec = (await catalog.fresh_queue(queue)).spec
    assert (spec.visibility_timeout_ms, spec.ttl_ms) == (5_400_000, 172_800_000)
    await visibility.fill("soon")
    await press(page, "Save")
    assert await visibility.evaluate("field => field.validity.patternMismatch")
    assert complaints == []


@pytest.mark.parametrize(("width", "height"), [(DESK, 600), (PHONE, 700)])
@pytest.mark.parametrize("path", ["/ui/queues/orders/settings", "/ui/streams/clicks/settings"])
async def test_bar_covers_no_field_that_has_the_focus(
    page: Page, path: str, width: int, height: int
):
    await page.set_viewport_size({"width": width, "height": height})
    await page.goto(path)
    for field in ("retention_seconds", "archive"):
        await page.evaluate(
            """name => {
              const field = document.querySelector(`[data-settings] [name=${name}]`);
              if (field.tagName === "SELECT") field.selectedIndex = 1 - field.selectedIndex;
              else field.value = "5d";
              field.dispatchEvent(new Event("input", {bubbles: true}));
            }""",
            field,
        )
    await expect(page.locator(".changes.pending")).to_be_visible()

    assert await page.evaluate(COVERED) == []
    await page.mouse.wheel(0, -10_000)
    await look(page, f"journey-settings-{width}-{path.split('/')[2]}")


async def test_durations_are_parsed_as_by_the_command_line(page: Page):
    await page.goto("/ui/queues")
    parse = """async texts => {
      const script = document.querySelector("script[src$='js/app.js']").src;
      const { secondsOf } = await import(script.replace("app.js", "durations.js"));
      return texts.map(secondsOf).map(String);
    }"""

    parsed = await page.evaluate(parse, [text for text, _ in VALID_DURATIONS])
    refused = await page.evaluate(parse, INVALID_DURATIONS)

    assert [float(one) for one in parsed] == [seconds for _, seconds in VALID_DURATIONS]
    assert set(refused) == {"NaN"}
