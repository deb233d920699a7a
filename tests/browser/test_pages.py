"""Properties of every page of the dashboard."""

from urllib.parse import urlsplit

import pytest
from fastapi.routing import APIRoute
from playwright.async_api import expect

from api.admin.routes import ROUTERS
from tests.browser.conftest import Service, log_in
from tests.browser.observations import (
    ANIMATIONS_END,
    DESK,
    LOOKS_ONLY,
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
from tests.browser.store_calls import StoreCalls, store_calls
from tests.browser.world import EVENTS

pytestmark = pytest.mark.one_store

SHIFT_MAX = 0.01  # a tenth of what counts as good; on a busy machine the font may load late
REFRESH_SHIFT_MAX = 0.001
REFRESH = """() => new Promise(done => {
  if (!document.querySelector("#live[data-live]")) return done();
  document.addEventListener("htmx:after:swap", () => setTimeout(done, 50), {once: true});
  document.dispatchEvent(new Event("visibilitychange"));
})"""
"""Trigger the periodic refresh of a page."""

NEWS_MAX = 5
"""Maximum number of refreshes with new alerts, as on a busy machine."""

LOADS_MAX = 3

SCROLLED_TABLES = """() => [...document.querySelectorAll(".table-wrap")]
  .filter(wrap => wrap.offsetParent && wrap.scrollWidth > wrap.clientWidth + 1)
  .map(wrap => wrap.querySelector("caption")?.textContent ?? wrap.className)"""
"""Captions of the tables that are wider than their place."""

UNLISTED = ("/body", "/preview", ".ndjson", "/ui/search", "/ui/login", "/ui/keys/{key}", "/docs")
"""Ends of paths that are no pages, or need a session."""

SLOW_BYTES_PER_S = 15_000

every_page = pytest.mark.parametrize("at", PAGES, ids=lambda at: at.name)


async def moved_by_refreshing(page) -> float:
    """Layout shift of a refresh whose alerts are unchanged; new alerts make their list longer."""
    news = page.locator(".attention b")
    for _ in range(NEWS_MAX):
        before = await news.all_text_contents(), await layout_shift(page)
        await page.evaluate(REFRESH)
        if await news.all_text_contents() == before[0]:
            return await layout_shift(page) - before[1]
    pytest.fail("Each refresh brought news.")


async def loads_until_few_calls(
    page, path: str, first: StoreCalls, calls_max: int
) -> list[StoreCalls]:
    """Load the page again while it makes too many store calls: those of background tasks are counted too."""
    loads = [first]
    while len(loads) < LOADS_MAX and loads[-1].total >= calls_max:
        with store_calls() as calls:
            await page.goto(path)
        loads.append(calls)
    return loads


async def path_of(service: Service, at: At) -> str:
    """Return the path of a page of the served world."""
    topic = await service.storage.topics.get(EVENTS)
    return at.path.replace("{message}", f"{topic.stream_id}-0-2")


@every_page
async def test_page_is_accessible_small_cheap_and_stable(page, service: Service, at: At):
    complaints = Complaints(page)
    path = await path_of(service, at)
    async with page_bytes(page) as weighed:
        with store_calls() as calls:
            answer = await page.goto(path)
        await page.evaluate("document.fonts.ready")
    assert answer is not None
    policy = (await answer.all_headers())["content-security-policy"]
    moved = await layout_shift(page), await shifted(page)
    refreshed = await moved_by_refreshing(page)
    broken = await violations(page)
    await look(page, f"{at.name}-light-{DESK}")
    faults = await axe(page)
    too_wide = []
    for width in (TABLET, PHONE):
        await page.set_viewport_size({"width": width, "height": 900})
        too_wide += [width] * await is_too_wide(page)
    scrolled = await page.evaluate(SCROLLED_TABLES)
    await page.emulate_media(color_scheme="dark")
    await page.evaluate(ANIMATIONS_END)
    await look(page, f"{at.name}-dark-{PHONE}")
    faults += await axe(page, LOOKS_ONLY)
    loads = await loads_until_few_calls(page, path, calls, at.calls_max)

    assert answer.status == 200
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert broken == []
    assert complaints == []
    assert await page.evaluate("window.pwned") is None
    assert faults == []
    assert too_wide == []
    assert scrolled == []
    assert moved[0] < SHIFT_MAX, moved[1]
    assert refreshed < REFRESH_SHIFT_MAX, await shifted(page)
    assert weighed.total < at.bytes_max, weighed.of
    assert loads[-1].total < at.calls_max, loads


def test_every_page_is_listed():
    paths = [urlsplit(at.path).path for at in PAGES]
    pages = [
        route
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute) and not route.path.endswith((*UNLISTED, "{path:path}"))
    ]

    missing = [one.path for one in pages if not any(map(one.path_regex.match, paths))]

    assert len(pages) > 30
    assert missing == []


async def test_pages_of_a_session_are_accessible(secured_service, service):
    key = await service.key()
    await secured_service.goto("/ui/login")
    faults = await faults_of(secured_service)
    await log_in(secured_service, key.token)
    await expect(secured_service.locator(".nav")).to_be_visible()
    for path in (f"/ui/keys/{key.id}", "/ui/no-such-page"):
        await secured_service.goto(path)
        faults += await faults_of(secured_service)

    assert faults == []


async def faults_of(page) -> list[str]:
    """Accessibility faults in both themes, wide and narrow."""
    faults = await axe(page)
    await page.set_viewport_size({"width": PHONE, "height": 900})
    await page.emulate_media(color_scheme="dark")
    await page.evaluate("() => new Promise(requestAnimationFrame)")
    faults += await axe(page, LOOKS_ONLY)
    await page.emulate_media(color_scheme="light")
    await page.set_viewport_size({"width": DESK, "height": 900})
    return faults


async def test_slowly_loaded_page_does_not_shift(page):
    """Tables grew wider with their rows."""
    await page.goto("/ui")  # shared assets are cached from now on
    network = await page.context.new_cdp_session(page)
    slowly = {"offline": False, "latency": 0, "downloadThroughput": SLOW_BYTES_PER_S}
    await network.send("Network.emulateNetworkConditions", slowly | {"uploadThroughput": -1})

    for path in ("/ui/streams/ledger/browse?at=earliest&shard=0", "/ui/webhooks/crm"):
        await page.goto(path)

        assert await layout_shift(page) == 0, await shifted(page)
