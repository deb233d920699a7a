"""Stores in the dashboard: the members of a replica set, and a switch-over."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.conftest import Service, a_context, press
from tests.browser.observations import DESK, LOOKS_ONLY, PHONE, axe, is_too_wide, look
from tests.recorded_replica_set import SECOND, THIRD, RecordedReplicaSet, serving_replica_set

pytestmark = pytest.mark.one_store


async def test_replica_becomes_primary_when_confirmed(
    browser: Browser, service: Service, tmp_path: Path
):
    replica_set = RecordedReplicaSet()
    async with (
        serving_replica_set(service.storage, replica_set, tmp_path, "open") as server,
        a_context(browser, server.url) as context,
    ):
        page = await context.new_page()
        await page.goto("/ui/stores")

        await expect(page.get_by_text("2 of 3 stores")).to_be_visible()
        await expect(page.get_by_text("10.0.0.9:6379")).to_be_visible()
        away = page.locator("tr", has_text=THIRD)
        await expect(away).to_contain_text("Away")
        assert await away.get_by_role("button").count() == 0
        faults = []
        for theme in ("light", "dark"):
            await page.emulate_media(color_scheme=theme)
            for width in (DESK, PHONE):
                await page.set_viewport_size({"width": width, "height": 900})
                await look(page, f"stores-replicated-{theme}-{width}")
                faults += await axe(page, LOOKS_ONLY)
                faults += ["too wide"] * await is_too_wide(page)
        assert faults == []

        await page.set_viewport_size({"width": DESK, "height": 900})
        await page.locator("tr", has_text=SECOND).get_by_role("button").click()
        dialog = page.locator("dialog[open]")
        await expect(dialog).to_contain_text(f"{SECOND} becomes the primary")
        assert replica_set.calls == []
        await look(page, "stores-switch-over")
        await press(page, "Switch over")

        await expect(page.get_by_text("The primary has changed")).to_be_visible()
    assert replica_set.calls == [("switch_over", SECOND)]
