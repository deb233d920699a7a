"""What holds for every page of the dashboard."""

import pytest

from tests.browser.counting import store_calls
from tests.browser.looking import (
    DESK,
    PHONE,
    TABLET,
    Complaints,
    axe,
    is_too_wide,
    layout_shift,
    look,
    page_bytes,
    shifted,
    violations,
)
from tests.browser.pages import PAGES, At

pytestmark = pytest.mark.one_store

PAGE_BYTES_MAX = 150_000
SHIFT_MAX = 0.001  # a line that moves by a pixel
STORE_CALLS_MAX = 60

every_page = pytest.mark.parametrize("at", PAGES, ids=lambda at: at.name)


@every_page
async def test_everyone_can_use_it_at_every_width_and_in_both_themes(page, at: At):
    await page.goto(at.path)
    faults, too_wide = [], []
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme)
        for width in (DESK, TABLET, PHONE):
            await page.set_viewport_size({"width": width, "height": 900})
            await look(page, f"{at.name}-{theme}-{width}")
            if await is_too_wide(page):
                too_wide.append((theme, width))
            if width != TABLET:
                faults += await axe(page)

    assert faults == []
    assert too_wide == []


@every_page
async def test_it_is_small_keeps_to_its_policy_and_stays_where_it_is(page, at: At):
    complaints = Complaints(page)
    async with page_bytes(page) as weighed:
        answer = await page.goto(at.path)
        await page.wait_for_load_state("networkidle")
    assert answer is not None

    policy = (await answer.all_headers())["content-security-policy"]

    assert answer.status == 200
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert await violations(page) == []
    assert complaints == []
    assert await page.evaluate("window.pwned") is None
    assert weighed.total < PAGE_BYTES_MAX, weighed.of
    assert await layout_shift(page) < SHIFT_MAX, await shifted(page)


@every_page
async def test_the_stores_are_asked_a_bounded_number_of_times(page, at: At):
    await page.goto(at.path)

    with store_calls() as calls:
        await page.reload()

    assert calls.total < STORE_CALLS_MAX, calls
