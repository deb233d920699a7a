"""The page observations detect what they should."""

import hashlib
import tomllib

import pytest

from storage.domain.names import QueueName
from tests.browser.observations import ASSETS, axe, layout_shift, page_bytes, violations
from tests.browser.store_calls import store_calls
from tests.browser.world import (
    ANALYTICS,
    BILLING,
    CROWD,
    EMAILS,
    INVOICES,
    LEDGER,
    ORDERS,
    PAYMENTS,
    REPLAYS,
)
from tests.conditions import eventually

pytestmark = pytest.mark.one_store

STRICT = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'",
    "content-type": "text/html; charset=utf-8",
}


PAINTED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


async def shown(page, body: str) -> None:
    """Open a test page under a strict content security policy."""

    async def answer(route) -> None:
        html = (
            f'<!doctype html><html lang="en"><title>t</title><main><h1>t</h1>{body}</main></html>'
        )
        await route.fulfill(body=html, headers=STRICT)

    await page.route("**/made-up", answer)
    await page.goto("/made-up")


def test_vendored_files_match_the_manifest():
    for asset in tomllib.loads((ASSETS / "VENDOR.toml").read_text())["asset"]:
        content = (ASSETS / asset["file"]).read_bytes()

        assert hashlib.sha256(content).hexdigest() == asset["sha256"]
        assert (ASSETS / asset["licence_file"]).exists()


async def test_accessibility_faults_are_found_under_strict_policy(page):
    await shown(page, '<img src="data:,"><input type="text">')

    actual_violations = await axe(page)

    assert {line.split()[1] for line in actual_violations} == {"image-alt:", "label:"}


async def test_policy_violations_are_recorded(page, complaints):
    await shown(page, "<script>document.title = 'ran'</script>")

    assert await page.title() == "t"
    assert await violations(page) == ["script-src-elem inline"]
    assert len(complaints) == 1


async def test_layout_shifts_are_recorded(page):
    await shown(page, "<p id=p>one</p>")
    await page.evaluate(PAINTED)  # elements that were never painted do not shift
    before = await layout_shift(page)

    await page.evaluate("document.querySelector('h1').style.marginBottom = '300px'")

    assert before == 0
    await eventually(lambda: _has_moved(page), True)


async def _has_moved(page) -> bool:
    return await layout_shift(page) > 0.005


async def test_page_weight_is_measured(page):
    async with page_bytes(page) as weighed:
        await shown(page, "x" * 1000)

    assert 1000 < weighed.total < 1200


async def test_store_calls_are_counted(service):
    await service.storage.queues.stats(ORDERS)

    with store_calls() as warm:
        await service.storage.queues.stats(ORDERS)
        await service.storage.catalog.list_queues(CROWD, limit=1)

    assert warm.commands >= 1
    assert len(warm.statements) >= 1


async def test_world_has_the_described_state(service):
    storage = service.storage
    stuck, busy = await storage.queues.stats(ORDERS), await storage.queues.stats(EMAILS)
    crowd = await storage.catalog.list_queues(CROWD, limit=1000)

    assert (stuck.ready, stuck.receive_count) == (40, 0)
    assert (busy.ready, busy.in_flight) == (42, 8)
    assert len(await storage.dead_letters.reasons(INVOICES)) == 3
    assert [one.group for one in await storage.parked_groups.browse(PAYMENTS)] == ["account-0"]
    assert sum(lag.records for lag in await storage.groups.lags.by_shard(ANALYTICS)) == 298
    assert sum(lag.records for lag in await storage.groups.lags.by_shard(BILLING)) == 0
    assert sum(
        one.state.files for one in (await storage.archive_admin.show(LEDGER)).shards if one.state
    )
    states = {
        name: (await storage.replays.get("default", name)).job.state.value for name in REPLAYS
    }
    assert [states[name] for name in REPLAYS] == ["done", "running", "failed", "paused"]
    assert crowd[0].name == QueueName("queue-00001", CROWD)
