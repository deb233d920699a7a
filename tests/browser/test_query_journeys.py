"""A query in the dashboard: its editor, rows, refusal and cancellation."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.stream import StreamSpec
from tests.browser.conftest import Service, press
from tests.browser.observations import faults_of_looks, look
from tests.view_worker import view_worker

pytestmark = pytest.mark.one_store

STREAM = StreamName("shop-visits")
SQL = "select page, count(*) as visits from c group by page order by visits desc"


@pytest_asyncio.fixture(loop_scope="package")
async def visits(service: Service) -> AsyncIterator[None]:
    """A stream with three visits of two pages."""
    await service.storage.catalog.put_stream(STREAM, StreamSpec())
    pages = ("/shop/pears", "/shop/<b>plums</b>", "/shop/pears")
    await service.storage.streams.append(
        STREAM, [Record(b'{"page": "%b"}' % page.encode()) for page in pages]
    )
    yield
    await service.storage.catalog.delete_stream(STREAM)


@pytest.mark.usefixtures("visits")
async def test_query_is_run_refused_and_shown_again(page: Page, service: Service):
    result = page.locator("[data-query-result]")
    await page.goto(f"/ui/queries?stream={STREAM.name}")
    await page.locator("[name=sql]").fill(SQL)
    await page.locator("[data-part=columns]").first.fill("page string")
    async with view_worker(service.settings):
        await press(page, "Run")
        cells = result.locator("tbody :is(th, td)")
        await expect(cells).to_have_text(["/shop/pears", "2", "/shop/<b>plums</b>", "1"])
        await expect(result.locator("[role=status]")).to_contain_text("2 rows")
        await expect(result.locator("dl")).to_contain_text("3 records; next offsets by shard 0:3")
        await page.reload()
        await expect(page.locator("[name=sql]")).to_have_value(SQL)
        await expect(cells).to_have_count(4)
        faults = await faults_of_looks(page, "journey-query")
        await page.locator("[name=sql]").fill("select 1 from c")
        await press(page, "Run")
        await expect(page.locator("[role=alert]")).to_contain_text("Line 1, column 8")
        await look(page, "journey-query-refused")

    assert faults == []


@pytest.mark.usefixtures("visits")
async def test_rows_show_all_digits_of_numbers(page: Page):
    """A sum above 2^53 was shown as another number: a script reads numbers as doubles."""
    numbers = ("9007199254740993", "-12345678901234567890.25", "0.1", "1e+300", "12")
    columns = [{"name": f"c{nth}", "type": "decimal(38,2)"} for nth in range(len(numbers))]
    row = ",".join(f'"c{nth}":{number}' for nth, number in enumerate(numbers))
    body = {"id": "q", "state": "done", "columns": columns, "truncated": False}
    body |= {"as_of": {}, "records": {}, "seconds": 0.1, "waiting_for": None, "rows": []}
    answer = json.dumps(body).replace('"rows": []', f'"rows": [{{{row}}}]')
    await page.route(
        "**/v1/queries",
        lambda route: route.fulfill(body=answer, content_type="application/json"),
    )
    await page.goto(f"/ui/queries?stream={STREAM.name}")
    await page.locator("[name=sql]").fill(SQL)
    await press(page, "Run")

    cells = page.locator("[data-query-result] tbody :is(th, td)")
    await expect(cells).to_have_text([*numbers])


@pytest.mark.usefixtures("visits")
async def test_query_without_a_worker_waits_and_is_cancelled(page: Page):
    await page.goto(f"/ui/queries?stream={STREAM.name}")
    await page.locator("[name=sql]").fill(SQL)
    await press(page, "Add a relation")
    added = page.locator("[data-relation]").nth(1)
    await added.locator("[data-part=name]").fill("u")
    await added.locator("[data-part=kind]").select_option("table")
    await added.locator("[data-part=source]").fill(STREAM.name)
    await press(page, "Run")
    status = page.locator("[data-query-result] [role=status]")
    await expect(status).to_contain_text("none is running")
    await look(page, "journey-query-waits")
    await press(page, "Cancel the query")
    await expect(status).to_have_text("cancelled")
    await expect(page.get_by_role("button", name="Cancel the query")).to_be_hidden()
