"""The page of the tutorial of views, which follows the rows of a view in a browser."""

import httpx
import pytest
from playwright.async_api import expect

from api.config.settings import Settings
from storage.domain.limits import Limits
from tests.browser.conftest import ELSEWHERE, Service, a_context, served_folder
from tests.documentation import DOCS, EXAMPLE_URL, blocks
from tests.view_worker import view_worker
from tests.websocket_client import running_server

pytestmark = pytest.mark.one_store

CLICKS, CHANGES, VIEW = "live-clicks", "plan-clicks", "clicks-per-plan"
QUERY = {
    "sql": "select plan, count(*) as clicks from c group by plan",
    "from": {"c": {"stream": CLICKS, "columns": "plan string"}},
    "into": [{"stream": CHANGES}],
}


async def click(client: httpx.AsyncClient, *plans: str) -> None:
    records = [{"data": {"plan": plan}} for plan in plans]
    path = f"/v1/streams/{CLICKS}/records"
    (await client.post(path, json={"records": records})).raise_for_status()


async def test_page_shows_rows_and_follows_their_changes(browser, service: Service, tmp_path):
    [page_text] = [
        block.text for block in blocks(DOCS / "tutorials" / "views.md") if block.language == "html"
    ]
    with served_folder(tmp_path) as port:
        origin = f"http://{ELSEWHERE}:{port}"
        async with (
            running_server(service.storage, Limits(), Settings(cors_origins=origin)) as server,
            view_worker(service.settings),
            a_context(browser, origin) as context,
            httpx.AsyncClient(base_url=server.url) as client,
        ):
            (tmp_path / "live.html").write_text(page_text.replace(EXAMPLE_URL, server.url))
            for stream in (CLICKS, CHANGES):
                (await client.put(f"/v1/streams/{stream}", json={})).raise_for_status()
            (await client.put(f"/v1/views/{VIEW}", json=QUERY)).raise_for_status()
            await click(client, "free", "pro", "free")
            page = await context.new_page()

            await page.goto("/live.html")
            await expect(page.locator("tr")).to_have_text(["free2", "pro1"])
            await click(client, "none", "pro")
            await expect(page.locator("tr")).to_have_text(["free2", "none1", "pro2"])
            (await client.delete(f"/v1/views/{VIEW}")).raise_for_status()
