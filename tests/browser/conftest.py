"""Chromium with a real service and real stores, in one event loop."""

import http.server
import inspect
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from api.config.settings import Settings
from storage.access.secret_box import new_key
from storage.bootstrap import Storage, open_storage
from storage.domain.access.credentials import CredentialRequest, NewSecret, Rights
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR, Role
from storage.domain.limits import Limits
from storage.embedded.valkey import running_valkey
from storage.settings import StorageSettings
from tests.browser.observations import DESK, WATCH, Complaints
from tests.browser.world import make_crowd, make_world
from tests.conditions import PATIENCE_S
from tests.databases import database
from tests.debian import debian_program
from tests.folders import quick_folder
from tests.websocket_client import running_server

ELSEWHERE = "mill.example.test"
"""A host name that only the browser resolves."""

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--font-render-hinting=none",
    f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1",
]
PATIENCE_MS = 1_000 * PATIENCE_S
expect.set_options(timeout=PATIENCE_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run these tests in the event loop of the service and the browser."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and inspect.iscoroutinefunction(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.asyncio(loop_scope="package"), append=False)


class _Files(http.server.SimpleHTTPRequestHandler):
    """The files of a folder."""

    def log_message(self, *_: object) -> None:
        """Keep the output of the tests clean."""


@contextmanager
def served_folder(folder: Path) -> Iterator[int]:
    """Serve the files of a folder by plain http; yield the port."""
    handler = partial(_Files, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@dataclass(frozen=True)
class Service:
    """The dashboard at two addresses: `open_url` in open mode, `keys_url` with keys required."""

    open_url: str
    keys_url: str
    storage: Storage
    settings: StorageSettings

    async def key(self, *roles: Role, everywhere: bool = False) -> NewSecret:
        """Create a key."""
        credential_request = CredentialRequest(
            name="ada", rights=Rights(roles=roles or (Role.ADMIN,)), all_namespaces=everywhere
        )
        _, secret = await self.storage.credentials.create(LOCAL_ADMINISTRATOR, credential_request)
        return secret


@pytest.fixture(scope="package")
def chromium() -> str:
    """Debian's Chromium; Playwright's own browsers are never downloaded.

    Its headless shell has no windows, whose toolbars are pages too: it takes a third of the time.
    """
    shell = "chromium-headless-shell"
    return debian_program(shell, shell, "chromium", "chromium-browser")


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def browser(chromium: str) -> AsyncIterator[Browser]:
    """One browser for all tests of this folder."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def service(
    chromium: str, postgres_server_url: str, migrated_template: str
) -> AsyncIterator[Service]:
    """The served world; tests share it, and change only their own resources."""
    with psycopg.connect(postgres_server_url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE browser TEMPLATE "{migrated_template}"'.encode())
    with (
        quick_folder("browser") as data,
        running_valkey(data) as redis_url,
    ):
        settings = StorageSettings(
            redis_url=redis_url,
            database_url=database(postgres_server_url, "browser"),
            archive_url=f"file://{data}/archive",
            secret_keys=(new_key(),),
            webhook_allow=("127.0.0.1",),
        )
        await make_world(settings)
        await make_crowd(settings.database_url)
        async with (
            open_storage(settings) as storage,
            running_server(storage, Limits(), Settings(webhook_allow="127.0.0.1")) as anyone,
            running_server(storage, Limits(), Settings(auth="keys")) as server,
        ):
            yield Service(anyone.url, server.url, storage, settings)


@asynccontextmanager
async def a_context(
    browser: Browser, url: str, *, width: int = DESK, height: int = 900
) -> AsyncGenerator[BrowserContext]:
    """A fresh browser context."""
    context = await browser.new_context(
        base_url=url, viewport={"width": width, "height": height}, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE_MS)
    await context.add_init_script(WATCH)
    try:
        yield context
    finally:
        await context.close()


@pytest_asyncio.fixture(loop_scope="package")
async def context(browser: Browser, service: Service) -> AsyncIterator[BrowserContext]:
    """A fresh browser context at the open address; its content security policy is enforced."""
    async with a_context(browser, service.open_url) as context:
        yield context


@pytest_asyncio.fixture(loop_scope="package")
async def page(context: BrowserContext) -> Page:
    """A page of the context."""
    return await context.new_page()


@pytest_asyncio.fixture(loop_scope="package")
async def secured_service(browser: Browser, service: Service) -> AsyncIterator[Page]:
    """A page of the service that requires a key."""
    async with a_context(browser, service.keys_url) as context:
        yield await context.new_page()


async def log_in(page: Page, word: str) -> None:
    """Submit a key in the login form."""
    await page.locator("[name=key]").fill(word)
    await press(page, "Log in")


async def press(page: Page, name: str) -> None:
    """Press a button by its label."""
    await page.get_by_role("button", name=name, exact=True).first.click()


@pytest_asyncio.fixture(loop_scope="package")
async def complaints(page: Page) -> Complaints:
    """Errors and warnings of the page from now on."""
    return Complaints(page)
