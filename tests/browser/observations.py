"""Observations of a page: screenshots, accessibility, layout shifts, bytes and errors."""

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any, cast

from playwright.async_api import ConsoleMessage, Page, Request

ASSETS = Path(__file__).parent / "assets"
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
PHONE, TABLET, LAPTOP, DESK = 390, 820, 1280, 1440

WATCH = """
window.__shifts = [];
new PerformanceObserver(list => {
  for (const one of list.getEntries()) if (!one.hadRecentInput)
    window.__shifts.push([one.value, one.sources.map(s => s.node && (s.node.id || s.node.className || s.node.nodeName))]);
}).observe({type: "layout-shift", buffered: true});
window.__violations = [];
addEventListener("securitypolicyviolation", e =>
  window.__violations.push(e.violatedDirective + " " + (e.blockedURI || "inline")));
"""
"""Initial script of every page; scripts of the browser are exempt from the page's policy."""

_axe = (ASSETS / "axe-4.14.1.min.js").read_text()


async def look(page: Page, name: str) -> None:
    """Save a screenshot, if the environment has `SCREENSHOTS=1`."""
    if os.environ.get("SCREENSHOTS"):
        path = SCREENSHOTS / f"{name}.png"
        await page.screenshot(path=path, full_page=True, animations="disabled")


LOOKS_ONLY = ("color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size")
"""The axe-core rules that depend on theme or width; they take a quarter of the time of all."""


ANIMATIONS_END = """async () => {
  await new Promise(requestAnimationFrame);  // scripts follow a changed theme with the next frame
  const running = document.getAnimations();
  const ending = running.filter(one => one.effect.getComputedTiming().endTime !== Infinity);
  await Promise.allSettled(ending.map(one => one.finished));
}"""
"""Wait until no colour or size is on its way to another: a theme changes with transitions."""


async def axe(page: Page, rules: Sequence[str] = ()) -> list[str]:
    """Serious and critical accessibility violations, by these axe-core rules or by all."""
    if not await page.evaluate("typeof window.axe === 'object'"):
        await page.evaluate(_axe)
    await page.evaluate(ANIMATIONS_END)
    value = await page.evaluate(
        """async rules => (await axe.run(document, {
          resultTypes: ["violations"], preload: false,
          ...(rules.length ? {runOnly: {type: "rule", values: rules}} : {}),
        })).violations""",
        list(rules),
    )
    return [
        f"{one['impact']} {one['id']}: {node['target']} {node.get('failureSummary', '')}"
        for one in value
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]


async def layout_shift(page: Page) -> float:
    """Cumulative layout shift since the page loaded, without shifts after user input."""
    return float(await page.evaluate("window.__shifts.reduce((sum, one) => sum + one[0], 0)"))


async def shifted(page: Page) -> list[Any]:
    """The elements that shifted."""
    return cast(list[Any], await page.evaluate("window.__shifts"))


async def violations(page: Page) -> Sequence[str]:
    """Violations of the content security policy."""
    return cast(list[str], await page.evaluate("window.__violations"))


async def is_too_wide(page: Page) -> bool:
    """Return whether the page scrolls sideways; charts get a moment to follow a resize."""
    return bool(
        await page.evaluate(
            """async () => {
              const root = document.documentElement;
              for (let tries = 0; root.scrollWidth > root.clientWidth && tries < 20; tries += 1)
                await new Promise(done => setTimeout(done, 50));
              return root.scrollWidth > root.clientWidth;
            }"""
        )
    )


async def faults_of_looks(page: Page, name: str) -> list[str]:
    """Return what is wrong with a page, wide and narrow, light and dark; with screenshots."""
    faults = list[str]()
    for width, scheme in product((LAPTOP, PHONE), ("light", "dark")):
        await page.set_viewport_size({"width": width, "height": 900})
        await page.emulate_media(color_scheme=cast(Any, scheme))
        await page.evaluate(ANIMATIONS_END)
        if await is_too_wide(page):
            faults.append(f"too wide for {width}")
        faults += await axe(page, LOOKS_ONLY)
        await look(page, f"{name}-{scheme}-{width}")
    await page.set_viewport_size({"width": LAPTOP, "height": 900})
    return faults


class Complaints(list[str]):
    """Console errors and warnings of a page, exceptions of its scripts, and failed requests."""

    def __init__(self, page: Page) -> None:
        super().__init__()
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.append(f"exception: {error}"))

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.append(f"{message.type}: {message.text} {message.location.get('url', '')}")


class Bytes:
    """Bytes transferred for a page, compressed, by URL."""

    def __init__(self) -> None:
        self.of: dict[str, int] = {}

    @property
    def total(self) -> int:
        """All bytes."""
        return sum(self.of.values())


@asynccontextmanager
async def page_bytes(page: Page) -> AsyncGenerator[Bytes]:
    """Measure the document and assets that arrive within the block, without data of charts.

    What is fetched twice counts once.
    """
    counted, asked = Bytes(), list[Request]()

    def came(request: Request) -> None:
        if request.resource_type not in ("fetch", "xhr", "eventsource"):
            asked.append(request)

    page.on("requestfinished", came)
    try:
        yield counted
        for request in asked:
            counted.of[request.url] = (await request.sizes())["responseBodySize"]
    finally:
        page.remove_listener("requestfinished", came)
