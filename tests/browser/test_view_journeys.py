"""A view in the dashboard: a sink that fails, an edit that keeps the rest, sources of a row."""

from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from storage.bootstrap import Storage
from storage.domain.jobs import JobKind, JobState
from storage.domain.limits import HOUR_MS
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, StreamName, ViewName
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec
from storage.domain.views.plan import ViewBackTestSpec
from storage.domain.views.rows import IncludedRecord, RowQuery
from storage.domain.views.sink import ViewSink
from storage.domain.views.sources import SourceMode
from storage.domain.views.view import ViewInput, ViewQuery, ViewSpec, ViewTable
from tests.browser.conftest import Service, press
from tests.browser.observations import faults_of_looks, look
from tests.conditions import eventually
from tests.view_worker import view_worker

pytestmark = pytest.mark.one_store

VIEW, STREAM, ALERTS = ViewName("visits"), StreamName("visits"), QueueName("visit-alerts")
SINKS = (
    ViewSink(queue=ALERTS.name, when="visits > 1 AND page LIKE '/shop/%'", once_per_key=True),
    ViewSink(stream="visit-changes"),
)

TRACKED = SourceMode.RANGE
TABLES = {"p": ViewTable(stream="people", columns="plan string")}


@pytest_asyncio.fixture(loop_scope="package")
async def view(service: Service) -> AsyncIterator[None]:
    """A view whose first sink was deleted before it got a message."""
    storage = service.storage
    await storage.catalog.put_queue(ALERTS, QueueSpec())
    for name in (STREAM.name, "visit-changes", "people"):
        await storage.catalog.put_stream(StreamName(name), StreamSpec())
    sql = "select page, count(*) as visits from c group by page"
    inputs = {"c": ViewInput(stream=STREAM.name, columns="page string")}
    async with view_worker(service.settings):
        query = ViewQuery(sql=sql, inputs=inputs, tables=TABLES, sources=TRACKED)
        await storage.views.put(VIEW, ViewSpec(query=query, into=SINKS))
        await storage.catalog.delete_queue(ALERTS)
        await storage.streams.append(STREAM, [Record(b'{"page": "/shop/pears"}')] * 2)
        await eventually(lambda: have_sent(storage), [(False, True), (True, False)])
        yield
    await storage.views.delete(VIEW)
    await storage.catalog.delete_stream(STREAM)


async def have_sent(storage: Storage) -> list[tuple[bool, bool]]:
    """Return of each sink whether it has sent messages, and whether it has failed."""
    sinks = (await storage.views.status(VIEW)).sinks
    return [(sink.sent > 0, bool(sink.failure)) for sink in sinks]


@pytest.mark.usefixtures("view")
async def test_failing_sink_is_shown_and_an_edit_keeps_it(page: Page, service: Service):
    await page.goto("/ui")
    problem = page.locator(".attention b", has_text="Sink queue:visit-alerts of view visits")
    await expect(problem).to_be_attached()
    await page.goto("/ui/views/visits")
    table = page.locator("table", has_text="Condition")
    await expect(page.locator(".title")).to_contain_text("Sink failing")
    await expect(table).to_contain_text("Queue 'visit-alerts' does not exist.")
    await expect(table.get_by_role("link")).to_have_text(
        ["queue:visit-alerts", "stream:visit-changes"]
    )
    faults = await faults_of_looks(page, "journey-view-sinks")
    await press(page, "Edit…")
    await page.locator("dialog[open] [name=keep_seconds]").fill("30d")
    await look(page, "journey-view-edit")
    await press(page, "Save")
    await expect(page.locator("dl", has_text="Rows are kept")).to_contain_text("for 30 d behind")

    spec = (await service.storage.views.get(VIEW)).spec
    assert spec.query.sources is TRACKED
    assert faults == []
    assert (spec.into, spec.keep_ms, spec.query.tables) == (SINKS, 30 * 86_400_000, TABLES)


@pytest.mark.usefixtures("view")
async def test_edit_of_a_join_keeps_both_streams_and_the_view(page: Page, service: Service):
    storage, name = service.storage, ViewName("orders-paid")
    joined = ViewInput(
        stream="people", columns="plan string", event_time="", watermark_ms=5_000, idle_ms=7_000
    )
    inputs = {"c": ViewInput(stream=STREAM.name, columns="page string"), "p": joined}
    query = ViewQuery(
        sql="select page, count(*) as n from c group by page",
        inputs=inputs,
        tables={"t": ViewTable(view=VIEW.name, columns="page string, visits bigint")},
    )
    await storage.views.put(name, ViewSpec(query=query))
    await page.goto("/ui/views")
    await expect(page.locator("#v-orders-paid").get_by_role("link")).to_have_text(
        ["orders-paid", "visits", "people"]
    )
    await page.goto("/ui/views/orders-paid")
    settings = page.locator("dl", has_text="Joined with")
    await expect(settings).to_contain_text("A record of p waits")
    for label, name_of_target in {"Joined with p": "people", "View t": VIEW.name}.items():
        link = page.locator(f"dt:text-is('{label}') + dd a")
        await expect(link).to_have_text(name_of_target)
        await expect(link).to_have_css("text-decoration-line", "underline")
    faults = await faults_of_looks(page, "journey-view-join")
    await press(page, "Edit…")
    await page.locator("dialog[open] [name=keep_seconds]").fill("2d")
    faults += await faults_of_looks(page, "journey-view-join-edit")
    await press(page, "Save")
    await expect(page.locator("dl", has_text="Rows are kept")).to_contain_text("for 2 d behind")

    spec = (await storage.views.get(name)).spec
    assert (spec.query, spec.keep_ms) == (query, 2 * 86_400_000)
    assert faults == []
    await storage.views.delete(name)


@pytest.mark.usefixtures("view")
async def test_row_leads_to_the_records_of_its_sources(page: Page, service: Service):
    await page.goto("/ui/views/visits")
    await page.get_by_role("link", name="Records", exact=True).click()
    await expect(page.locator("h1")).to_have_text("Sources of /shop/pears")
    records = page.locator("table", has_text="Arrived").locator("tbody tr")
    await expect(records).to_have_count(2)
    faults = await faults_of_looks(page, "journey-view-sources")
    await records.first.get_by_role("link").click()
    await expect(page.locator("#record")).to_contain_text("/shop/pears")

    await page.goto("/ui/views/visits/sources?key=none")
    await expect(page.get_by_text("No row has this key")).to_be_visible()
    assert faults == []


@pytest.mark.usefixtures("view")
async def test_view_is_rebuilt_and_rolled_back(page: Page, service: Service):
    async with view_worker(service.settings):
        await page.goto("/ui/views/visits")
        await press(page, "Edit…")
        await page.locator("dialog[open] [name=keep_former_seconds]").fill("1d")
        await press(page, "Save")
        await expect(page.locator("dl", has_text="A former revision")).to_contain_text("for 1 d")
        await press(page, "Rebuild…")
        await look(page, "journey-view-rebuild")
        async with page.expect_navigation():  # it would meet the reload
            await press(page, "Rebuild")
        await eventually(lambda: revision_of(service.storage), 2)
        await page.reload()
        await expect(page.locator(".notice", has_text="was rebuilt")).to_contain_text("2 records")
        await expect(page.locator(".notice", has_text="is kept up to date")).to_contain_text(
            "Revision 1"
        )
        faults = await faults_of_looks(page, "journey-view-former")
        await press(page, "Roll back…")
        await look(page, "journey-view-rollback")
        await press(page, "Roll back")
        await eventually(lambda: revision_of(service.storage), 3)
    assert faults == []


@pytest.mark.usefixtures("view")
async def test_configuration_is_back_tested(page: Page, service: Service):
    storage = service.storage
    async with view_worker(service.settings):
        await page.goto("/ui/views/visits")
        await press(page, "Back-test…")
        dialog = page.locator("dialog[open]")
        await dialog.locator("[name=sql]").fill(
            "select page, count(*) as seen from c group by page"
        )
        await dialog.locator("[name=into]").fill('[{"queue": "new-alerts", "when": "seen > 1"}]')
        await look(page, "journey-view-backtest")
        await press(page, "Evaluate")
        tests = page.locator("table", has_text="Rows added")
        await eventually(lambda: states_of_back_tests(storage), [JobState.DONE])
        await expect(tests.locator("tbody tr")).to_have_count(1)
        await expect(tests).to_contain_text("1 message for queue:new-alerts")
        await tests.locator("summary").click()
        await expect(tests).to_contain_text('{"page":"/shop/pears","seen":2}')
        faults = await faults_of_looks(page, "journey-view-backtests")
    view, active, *_ = await storage.views.status(VIEW)
    await storage.jobs.submit(
        "default",
        JobKind.VIEW_BACK_TEST,
        VIEW.name,
        msgspec.to_builtins(
            ViewBackTestSpec(
                view_id=view.view_id,
                created_at_ms=view.created_at_ms,
                spec=view.spec,
                plan=active.plan,
            )
        ),
        delay_ms=HOUR_MS,
    )
    await page.reload()
    await expect(tests.locator("tbody tr").first).to_contain_text("Queued")
    assert faults == []
    assert "visits" in view.spec.query.sql


async def states_of_back_tests(storage: Storage) -> list[JobState]:
    return [one.job.state for one in await storage.view_back_tests.recent(VIEW, 5)]


@pytest.mark.usefixtures("view")
async def test_new_view_has_table_sinks_and_history(page: Page, service: Service):
    sql = "select page, count(*) as n from records group by page"
    async with view_worker(service.settings):
        await page.goto("/ui/views")
        await press(page, "New view")
        dialog = page.locator("dialog[open]")
        await dialog.locator("summary").click()
        fields = {
            "view": "plans",
            "from.records.stream": STREAM.name,
            "from.records.columns": "page string, at timestamp",
            "sql": sql,
            "from.lookup.table": "people",
            "from.lookup.columns": "plan string",
            "from.summary.view": VIEW.name,
            "from.records.event_time": "at",
            "from.records.watermark_seconds": "30s",
            "history_seconds": "1d",
            "into": '[{"stream": "visit-changes"}]',
        }
        for name, value in fields.items():
            await dialog.locator(f'[name="{name}"]').fill(value)
        await dialog.locator("[name=sources]").select_option("range")
        faults = await faults_of_looks(page, "journey-view-new")
        await press(page, "Create")
        await expect(page.locator("h1")).to_have_text("plans")

    plans = ViewName("plans")
    spec = (await service.storage.views.get(plans)).spec
    await service.storage.views.delete(plans)
    assert faults == []
    assert spec == ViewSpec(
        query=ViewQuery(
            sql=sql,
            inputs={
                "records": ViewInput(
                    stream=STREAM.name,
                    columns="page string, at timestamp",
                    event_time="at",
                    watermark_ms=30_000,
                )
            },
            tables={
                "lookup": ViewTable(stream="people", columns="plan string"),
                "summary": ViewTable(view=VIEW.name, columns="page string, visits bigint"),
            },
            sources=TRACKED,
        ),
        into=(ViewSink(stream="visit-changes"),),
        history_ms=86_400_000,
    )


@pytest.mark.usefixtures("view")
async def test_rows_are_shown_as_they_were(page: Page, service: Service):
    storage = service.storage
    async with view_worker(service.settings):
        await page.goto("/ui/views/visits")
        await expect(
            page.locator("table", has_text="Next offsets").get_by_role("link")
        ).to_have_count(0)
        await press(page, "Edit…")
        await page.locator("dialog[open] [name=history_seconds]").fill("1h")
        await press(page, "Save")
        await expect(page.locator("dl", has_text="Earlier rows can be read")).to_contain_text(
            "for 1 h"
        )
        before = (await storage.view_rows.read(VIEW, RowQuery())).revision.progress
        await storage.streams.append(STREAM, [Record(b'{"page": "/shop/pears"}')])
        after = IncludedRecord(0, before.positions[0])
        await storage.view_rows.read(VIEW, RowQuery(includes=after, wait_ms=20_000))
        await page.reload()
        rows = page.locator("table", has_text="in the order of their keys")
        await expect(rows).to_contain_text("3")
        await page.get_by_role("link", name=str(before.batch), exact=True).click()
        notice = page.locator(".notice", has_text=f"Rows as they were after batch {before.batch}")
        await expect(rows.locator("tbody td").nth(1)).to_have_text("2")
        faults = await faults_of_looks(page, "journey-view-history")
        await notice.get_by_role("link", name="Present rows").click()
        await expect(rows.locator("tbody td").nth(1)).to_have_text("3")
        await page.goto("/ui/views/visits?batch=0")
        await expect(page.get_by_text("none of that time or batch")).to_be_visible()
    assert faults == []


async def revision_of(storage: Storage) -> int:
    return (await storage.views.status(VIEW)).active.number
