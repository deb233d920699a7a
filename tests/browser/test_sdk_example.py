"""The TypeScript SDK's example page, served by plain http from an origin of its own."""

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
from playwright.async_api import expect

from api.config.settings import Settings
from storage.domain.access.permissions import Role
from storage.domain.limits import Limits
from tests.browser.conftest import ELSEWHERE, PATIENCE_MS, Service, a_context, press
from tests.javascript import compile_typescript
from tests.websocket_client import running_server

pytestmark = pytest.mark.one_store

SDK = Path(__file__).parents[2] / "openapi" / "sdk" / "typescript"
STREAM = "sdk-example"


class Files(http.server.SimpleHTTPRequestHandler):
    """The files of a folder."""

    def log_message(self, *_: object) -> None:
        """Keep the output of the tests clean."""


@pytest.fixture(scope="module")
def page_port() -> Iterator[int]:
    """The port at which the SDK's folder is served."""
    compile_typescript(SDK)
    handler = partial(Files, directory=str(SDK))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


async def test_page_appends_and_shows_records(browser, service: Service, page_port: int):
    """Pages without a secure context have no `crypto.randomUUID`: their first send failed."""
    origin = f"http://{ELSEWHERE}:{page_port}"
    admin, page_key = await service.key(Role.ADMIN), await service.key(Role.PRODUCER, Role.CONSUMER)
    settings = Settings(auth="keys", cors_origins=origin)
    async with (
        running_server(service.storage, Limits(), settings) as server,
        a_context(browser, origin) as context,
        httpx.AsyncClient(base_url=server.url) as client,
    ):
        headers = {"authorization": f"Bearer {admin.token}"}
        created = await client.put(f"/v1/streams/{STREAM}", headers=headers, json={})
        assert created.status_code == 201
        page = await context.new_page()

        address = f"/examples/browser.html?url={server.url}&stream={STREAM}#key={page_key.token}"
        await page.goto(address)
        await expect(page.locator("#state")).to_have_text("subscribed")
        assert not await page.evaluate("window.isSecureContext")
        await page.locator("[name=text]").fill("hello")
        await press(page, "Append")

        await expect(page.locator("li")).to_have_text("0/0 hello")


async def test_page_of_unlisted_origin_names_the_setting(browser, service: Service, page_port: int):
    """The browser says only `Failed to fetch`, and the page's subscription works."""
    origin = f"http://{ELSEWHERE}:{page_port}"
    page_key = await service.key(Role.ADMIN)
    async with a_context(browser, origin) as context:
        page = await context.new_page()

        address = f"/examples/browser.html?url={service.keys_url}&stream=clicks"
        await page.goto(f"{address}#key={page_key.token}")
        await expect(page.locator("#state")).to_have_text("subscribed")
        await page.locator("[name=text]").fill("hello")
        await press(page, "Append")

        await expect(page.locator("#state")).to_contain_text(
            f"Does its MILLSTREAM_CORS_ORIGINS list {origin}?", timeout=PATIENCE_MS
        )
