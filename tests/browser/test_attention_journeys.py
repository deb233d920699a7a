"""Journeys from the overview's list of problems: order, actions in the row, mutes."""

import re

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from storage.bootstrap import Storage, open_storage
from storage.domain.access.permissions import Role
from storage.domain.alerts.kinds import AlertKind, AlertSubject
from storage.domain.clock import ManualClock, SystemClock
from storage.domain.groups.group import GroupSpec
from storage.domain.limits import HOUR_MS
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, QueueName, StreamName
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.policies import PoisonPolicy
from storage.domain.queues.queue import QueueSpec, QueueType
from storage.domain.quotas import NO_QUOTAS
from storage.domain.streams.stream import StreamSpec
from tests.browser.conftest import Service, log_in
from tests.browser.observations import Complaints, look
from tests.browser.test_pages import REFRESH
from tests.conditions import eventually

pytestmark = pytest.mark.one_store

HARM = "harm"
PAGE = f"/ui?ns={HARM}"
STALLED = 12
PARKED_GROUPS = 2


def queue(name: str) -> QueueName:
    return QueueName(name, HARM)


async def send(storage: Storage, name: str, count: int) -> None:
    await storage.queues.send(queue(name), [NewMessage(b"x") for _ in range(count)])


async def reject(storage: Storage, name: str, count: int) -> None:
    messages = await storage.queues.receive(queue(name), messages_max=count)
    verdicts = [
        Settlement(message.receipt_handle, SettleAction.REJECT, reason="declined")
        for message in messages
    ]
    await storage.queues.settle(queue(name), verdicts)


async def make_problems(storage: Storage) -> None:
    """Fifteen problems of eight kinds, two hours ago."""
    put = storage.catalog.put_queue
    for number in range(STALLED):
        await put(queue(f"stalled-{number:02}"), QueueSpec())
        await send(storage, f"stalled-{number:02}", number + 1)
    await put(queue("full"), QueueSpec(messages_max=3))
    await send(storage, "full", 3)
    await put(queue("paused"), QueueSpec(paused=True))
    await send(storage, "paused", 5)
    await put(queue("letters"), QueueSpec(attempts_max=1))
    await send(storage, "letters", 4)
    await reject(storage, "letters", 4)
    fifo = QueueSpec(type=QueueType.FIFO, attempts_max=1, on_poison=PoisonPolicy.PARK_GROUP)
    await put(queue("parked"), fifo)
    sent = [
        NewMessage(b"x", group=f"g{n % PARKED_GROUPS}", dedup_id=str(n))
        for n in range(2 * PARKED_GROUPS)
    ]
    await storage.queues.send(queue("parked"), sent)
    for _ in range(PARKED_GROUPS):
        await reject(storage, "parked", 1)
    await storage.catalog.put_stream(StreamName("clicks", HARM), StreamSpec())
    await storage.groups.put(GroupName("readers", HARM), GroupSpec(stream="clicks"))
    await storage.streams.append(StreamName("clicks", HARM), [Record(b"x")])


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def problems(service: Service) -> Storage:
    """A namespace with problems."""
    await service.storage.namespaces.put(HARM, NO_QUOTAS)
    clock = ManualClock(SystemClock().now_ms() - 2 * HOUR_MS)
    async with open_storage(service.settings, clock=clock) as storage:
        await make_problems(storage)
    await sample(service.storage)
    return service.storage


async def sample(storage: Storage) -> None:
    """Measure all queues, in the next slot that is not measured yet."""

    async def is_measured() -> bool:
        return bool(await storage.time_series.sample())

    await eventually(is_measured, True)


def row(page: Page, kind: str, name: str) -> Locator:
    return page.locator(f"[id='alert-{kind}-{name}']")


async def unfold(page: Page, *details: str) -> None:
    for name in details:
        await page.locator(f"#{name} > summary").click()


async def test_problems_are_ordered_by_harm(page: Page, problems: Storage):
    await page.goto(PAGE)

    titles = page.locator(".attention > li > div b, .attention > li > details > summary b")
    shown = [text for text in await titles.all_text_contents() if "check" not in text]
    order = [
        next(n for n, text in enumerate(shown) if re.search(part, text))
        for part in ("full is full", "queues without a consumer", "paused is paused", "Parked")
    ]
    assert order == sorted(order)


async def test_first_chart_is_above_the_fold(page: Page, problems: Storage):
    """Fifteen rows pushed it below."""
    await page.goto(PAGE)

    chart = await page.locator(".chart").first.bounding_box()

    assert chart is not None
    assert chart["y"] + chart["height"] / 2 < 900
    assert await page.locator(".attention > li").count() > 4


async def test_unfolded_objects_stay_unfolded_when_refreshed(
    page: Page, problems: Storage, complaints: Complaints
):
    await page.goto(PAGE)

    await unfold(page, "alerts-queue_stalled")
    await page.evaluate(REFRESH)

    worst = page.locator("#alerts-queue_stalled .attention li b").first
    await expect(worst).to_have_text(f"No consumer receives from stalled-{STALLED - 1}")
    await expect(worst).to_be_visible()
    await expect(page.get_by_role("link", name="2 more", exact=True)).to_be_visible()
    await look(page, "journey-attention")
    assert complaints == []


async def test_alert_is_muted_and_unmuted(page: Page, problems: Storage):
    await page.goto(PAGE)
    full = row(page, "queue_full", "full")

    await full.get_by_role("button", name="Mute").click()
    await page.locator("#mute select").select_option("3600")
    await page.locator("#mute").get_by_role("button", name="Mute", exact=True).click()
    await expect(full).to_have_count(0)
    [mute] = await problems.alert_mutes.list(HARM)
    await page.get_by_text("1 muted").click()
    await page.get_by_role("button", name="Unmute").click()

    await expect(full).to_be_visible()
    assert mute.subject == AlertSubject(AlertKind.QUEUE_FULL, "full")
    assert mute.until_ms - mute.muted_at_ms == HOUR_MS
    assert await problems.alert_mutes.list(HARM) == []


async def test_paused_queue_is_resumed_from_its_row(page: Page, problems: Storage):
    await page.goto(PAGE)
    await reveal(page, "queue_paused", "paused")

    await row(page, "queue_paused", "paused").get_by_role("button", name="Resume").click()

    await expect(page.get_by_text("Delivery resumed")).to_be_visible()
    assert not (await problems.catalog.fresh_queue(queue("paused"))).spec.paused


async def reveal(page: Page, kind: str, name: str) -> None:
    """Open the folds that contain a row."""
    await page.evaluate(
        "id => { for (let at = document.getElementById(id); at; at = at.parentElement) if (at.matches('details')) at.open = true }",
        f"alert-{kind}-{name}",
    )


async def test_parked_groups_are_resumed_from_their_row(page: Page, problems: Storage):
    await page.goto(PAGE)
    await reveal(page, "queue_parked", "parked")

    button = f"Resume {PARKED_GROUPS} groups"
    await row(page, "queue_parked", "parked").get_by_role("button", name=button).click()

    await expect(page.get_by_text("2 of 2 groups resumed")).to_be_visible()
    assert (await problems.queues.stats(queue("parked"))).parked == 0


async def test_dead_letters_are_redriven_from_their_row(page: Page, problems: Storage):
    await page.goto(PAGE)
    await reveal(page, "dead_letters_old", "letters")

    await row(page, "dead_letters_old", "letters").get_by_role("button", name="Redrive").click()
    await expect(page.locator("#redrive")).to_contain_text("4 dead letters")
    await page.locator("#redrive").get_by_role("button", name="Redrive", exact=True).click()

    await expect(page.get_by_text("Redrive started")).to_be_visible()
    [move] = await problems.moves.list(queue("letters"))
    assert move.to_move == 4


async def test_reset_of_group_is_opened_from_its_row(page: Page, problems: Storage):
    await page.goto(PAGE)
    await reveal(page, "group_stalled", "readers")

    await row(page, "group_stalled", "readers").get_by_role("link", name="Reset").click()

    await expect(page.locator("#reset")).to_be_visible()
    await expect(page).to_have_url(re.compile(r"/ui/groups/readers\?ns=harm#reset$"))


@pytest.mark.parametrize(
    ("role", "shown"), [(Role.VIEWER, 0), (Role.OPERATOR, 1)], ids=["viewer", "operator"]
)
async def test_actions_are_shown_to_those_who_may_use_them(
    secured_service: Page, service: Service, role: Role, shown: int
):
    page = secured_service
    await sample(service.storage)
    key = await service.key(role)
    await page.goto("/ui")
    await log_in(page, key.token)
    await expect(page.locator("#attention-title")).to_be_visible()

    await reveal(page, "dead_letters_old", "invoices")
    letters = row(page, "dead_letters_old", "invoices")

    await expect(letters).to_be_visible()
    for name in ("Redrive", "Mute"):
        await expect(letters.get_by_role("button", name=name)).to_have_count(shown)
