"""Login: a key becomes a session cookie."""

import re

import pytest
from playwright.async_api import Page, Route, expect

from storage.domain.access.permissions import Role
from tests.browser.conftest import ELSEWHERE, Service, a_context, log_in, press
from tests.browser.observations import DESK, PHONE, axe, is_too_wide, look, violations

pytestmark = pytest.mark.one_store


async def test_logout_ends_the_session(secured_service: Page, service: Service):
    viewer = await service.key(Role.VIEWER)
    await secured_service.goto("/ui/queues?state=dead")
    await log_in(secured_service, viewer.token)
    await expect(secured_service).to_have_url(re.compile("/ui/queues\\?state=dead$"))
    await expect(secured_service.get_by_text("Read-only")).to_be_visible()

    await press(secured_service, "Log out")

    await expect(secured_service).to_have_url(re.compile("/ui/login$"))
    await secured_service.goto("/ui/queues")
    await expect(secured_service).to_have_url(re.compile("/ui/login"))


async def test_login_over_remote_plain_http_asks_for_no_key(browser, service: Service):
    port = service.keys_url.rpartition(":")[2]
    async with a_context(browser, f"http://{ELSEWHERE}:{port}") as context:
        page = await context.new_page()

        await page.goto("/ui/queues?state=dead")
        await expect(page.get_by_text("plain http")).to_be_visible()
        for width in (DESK, PHONE):
            await page.set_viewport_size({"width": width, "height": 700})
            await look(page, f"login-elsewhere-light-{width}")
            assert not await is_too_wide(page)
        await page.emulate_media(color_scheme="dark")
        await look(page, f"login-elsewhere-dark-{PHONE}")

        await expect(page.locator("[name=key]")).to_be_hidden()
        await expect(page.locator("code")).to_have_text(
            f"ssh -N -L 8080:127.0.0.1:{port} {ELSEWHERE}"
        )
        assert await page.get_by_role("link").get_attribute("href") == (
            "http://127.0.0.1:8080/ui/login?next=%2Fui%2Fqueues%3Fstate%3Ddead"
        )
        assert await axe(page) == []
        assert await violations(page) == []


async def test_browser_without_cookies_is_told_to_allow_them(
    secured_service: Page, service: Service
):
    async def without_cookie(route: Route) -> None:
        answer = await route.fetch()
        await secured_service.context.clear_cookies()
        headers = {name: of for name, of in answer.headers.items() if name != "set-cookie"}
        await route.fulfill(status=answer.status, headers=headers, body=await answer.body())

    await secured_service.route("**/v1/sessions", without_cookie)
    await secured_service.goto("/ui")
    await log_in(secured_service, (await service.key(Role.VIEWER)).token)

    await expect(secured_service.locator(".trouble")).to_contain_text("Allow cookies")
    await expect(secured_service).to_have_url(re.compile("/ui/login"))


@pytest.mark.parametrize(
    ("typed", "there"),
    [("/ui/", "/ui"), ("/ui/queues/?state=dead", "/ui/queues?state=dead")],
)
async def test_trailing_slash_redirects_to_page(page: Page, typed: str, there: str):
    answer = await page.goto(typed)

    assert answer is not None
    assert answer.status == 200
    await expect(page).to_have_url(re.compile(f"{re.escape(there)}$"))
