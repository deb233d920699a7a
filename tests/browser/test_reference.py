"""The API reference: the document as a page, and calls from it."""

import re

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import Service
from tests.browser.observations import Complaints, violations

pytestmark = pytest.mark.one_store

LOADING_MS = 60_000  # Swagger UI resolves a megabyte, beside the other tests


async def test_reference_calls_its_own_service(
    page: Page, service: Service, complaints: Complaints
):
    await page.goto("/docs#/queues/get_queue")
    await expect(page).to_have_url(re.compile(r"/ui/reference#/queues/get_queue$"))
    operation = page.locator("#operations-queues-get_queue")

    await operation.get_by_placeholder("queue").fill("orders", timeout=LOADING_MS)
    await operation.get_by_role("button", name="Execute").click()

    answer = operation.locator(".live-responses-table")
    await expect(answer).to_contain_text("200")
    await expect(answer.locator(".highlight-code").first).to_contain_text('"name": "orders"')
    assert await violations(page) == []
    assert all("escaping deep link whitespace" in complaint for complaint in complaints)
