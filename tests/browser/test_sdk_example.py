"""The TypeScript SDK's example page, served by plain http from an origin of its own."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from playwright.async_api import expect

from api.config.settings import Settings
from storage.domain.access.permissions import Role
from storage.domain.limits import Limits
from tests.browser.conftest import (
    ELSEWHERE,
    PATIENCE_MS,
    Service,
    a_context,
    press,
    served_folder,
)
from tests.javascript import compile_typescript
from tests.websocket_client import running_server

pytestmark = pytest.mark.one_store

SDK = Path(__file__).parents[2] / "openapi" / "sdk" / "typescript"
STREAM = "sdk-example"


@pytest.fixture(scope="module")
def page_port() -> Iterator[int]:
    """The port at which the SDK's folder is served."""
    compile_typescript(SDK)
    with served_folder(SDK) as port:
        yield port


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


@asynccontextmanager
async def ticket_backend(service_url: str, key: str) -> AsyncIterator[int]:
    """Run the example's backend; yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    environment = {**os.environ, "MILLSTREAM_URL": service_url, "MILLSTREAM_API_KEY": key}
    command = ["node", "--no-warnings", "examples/tickets.mjs", str(port)]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=SDK, env=environment, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"ready\n"
        yield port
    finally:
        process.kill()
        await process.communicate()


async def close_sockets(client: httpx.AsyncClient) -> None:
    """Close all sockets, once one is open: what is listed may have closed meanwhile."""
    for _ in range(100):
        items = (await client.get("/v1/sockets")).json()["items"]
        answers = [await client.delete(f"/v1/sockets/{item['id']}") for item in items]
        if any(answer.is_success for answer in answers):
            return
        await asyncio.sleep(0.1)
    pytest.fail("No socket was open.")


async def test_page_subscribes_with_tickets_of_backend(browser, service: Service, page_port: int):
    """Each connection takes a new ticket, and the page has no key."""
    admin, consumer = await service.key(Role.ADMIN), await service.key(Role.CONSUMER)
    stream = f"{STREAM}-tickets"
    headers = {"authorization": f"Bearer {admin.token}"}
    async with (
        ticket_backend(service.keys_url, consumer.token) as port,
        a_context(browser, f"http://{ELSEWHERE}:{port}") as context,
        httpx.AsyncClient(base_url=service.keys_url, headers=headers) as client,
    ):
        (await client.put(f"/v1/streams/{stream}", json={})).raise_for_status()
        page = await context.new_page()

        address = f"/examples/browser.html?url={service.keys_url}&stream={stream}"
        await page.goto(f"{address}#tickets=/ticket")
        await expect(page.locator("#state")).to_have_text("subscribed")
        await close_sockets(client)
        (
            await client.post(f"/v1/streams/{stream}/records", json={"data": "hello"})
        ).raise_for_status()

        await expect(page.locator("li")).to_have_text("0/0 hello", timeout=PATIENCE_MS)
