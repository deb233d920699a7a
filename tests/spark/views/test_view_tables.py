"""Views that read the rows of another view as a table."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.names import StreamName, ViewName
from storage.domain.streams.stream import Appended, StreamSpec
from storage.domain.views.sink import Emit, ViewSink
from storage.domain.views.view import ViewInput, ViewQuery, ViewSpec, ViewTable
from tests.spark.views.test_scan import (
    CLICKS,
    VIEW,
    VIEW_JOBS,
    click,
    put_clicks,
    rows_at,
    until,
)

pytestmark = pytest.mark.one_store

ORDERS, TOTALS = StreamName("orders"), ViewName("totals")
TYPES = "select person as key, sum(cents) as cents, max(paid) as paid, collect_set(shop) as shops, max(map(shop, day).a) as `first day` from o group by person"
COUNT = "select person, sum(cents) as cents from o group by person"
JOINED = "select t.cents, count(*) as clicks from c left join t on c.page = t.person group by 1"


def totals(sql: str) -> ViewSpec:
    columns = "person string, cents int, paid decimal(10,2), shop string, day timestamp"
    orders = ViewInput(stream=ORDERS.name, columns=columns)
    return ViewSpec(query=ViewQuery(sql=sql, inputs={"o": orders}))


def joined(sql: str = JOINED) -> ViewSpec:
    clicks = ViewInput(stream=CLICKS.name, columns="page string, ms bigint")
    tables = {"t": ViewTable(view=TOTALS.name)}
    return ViewSpec(query=ViewQuery(sql=sql, inputs={"c": clicks}, tables=tables))


@pytest.fixture
async def clicks(storage: Storage) -> Storage:
    await storage.catalog.put_stream(CLICKS, StreamSpec(shards=2))
    await storage.catalog.put_stream(ORDERS, StreamSpec())
    return storage


async def order(storage: Storage, name: ViewName = TOTALS, **fields: Any) -> None:
    """Append an order, and wait until the view of orders includes it."""
    record = replace(click("order"), data=json.dumps(fields).encode())
    [appended] = await storage.streams.append(ORDERS, [record])
    assert isinstance(appended, Appended)
    await rows_at(storage, {appended.shard: appended.offset}, name)


async def clicked(storage: Storage, *pages: str) -> dict[Any, int]:
    """Click pages; return the clicks of each value of the first column."""
    page = await rows_at(storage, await put_clicks(storage, *map(click, pages)))
    return {next(iter(row.values())): row["clicks"] for row in map(json.loads, page.rows)}


async def stops(storage: Storage) -> str:
    """Click until the view has stopped; return the reason."""
    await put_clicks(storage, click("ann"))
    await until(storage, VIEW, lambda status: status.active.is_stopped)
    return (await storage.views.status(VIEW)).active.failure


async def test_records_are_joined_with_the_rows_of_a_view_as_they_are(clicks, working):
    async with working(VIEW_JOBS):
        await clicks.views.put(TOTALS, totals(COUNT))
        await clicks.views.put(VIEW, joined())
        await order(clicks, person="ann", cents=500)
        first = await clicked(clicks, "ann", "bob")
        await order(clicks, person="ann", cents=200)
        await order(clicks, person="bob", cents=1)
        second = await clicked(clicks, "ann", "bob")
        progress = (await clicks.views.status(VIEW)).active.progress
        of_totals = (await clicks.views.status(TOTALS)).active.progress
    async with working(VIEW_JOBS):  # another worker, which reads the rows again
        third = await clicked(clicks, "ann")

    assert first == {500: 1, None: 1}
    assert second == {500: 1, None: 1, 700: 1, 1: 1}
    assert third == second | {700: 2}
    assert progress.tables == {"t": {1: of_totals.batch}}


async def test_columns_have_the_names_and_types_of_the_view(clicks, working):
    sql = "select to_json(struct(t.key, t.cents, t.paid, t.shops, t.`first day`)) as row, count(*) as clicks from c join t on c.page = t.key group by 1"
    async with working(VIEW_JOBS):
        await clicks.views.put(TOTALS, totals(TYPES))
        put = await clicks.views.put(VIEW, joined(sql))
        await order(
            clicks, person="ann", cents=2**31 - 1, paid=1.5, shop="a", day="2026-12-01T10:00:00Z"
        )
        await order(clicks, person="ann", cents=1)
        [(row, number)] = (await clicked(clicks, "ann", "bob")).items()

    assert put.definition.spec.query.tables["t"].columns == (
        "key string, cents bigint, paid decimal(10,2), shops array<string>, `first day` timestamp"
    )
    assert (json.loads(row), number) == (
        {
            "key": "ann",
            "cents": 2**31,
            "paid": 1.50,
            "shops": ["a"],
            "first day": "2026-12-01T10:00:00.000Z",
        },
        1,
    )


async def test_view_stops_when_the_other_one_has_no_such_column_any_more(clicks, working):
    async with working(VIEW_JOBS):
        await clicks.views.put(TOTALS, totals(COUNT))
        await clicks.views.put(VIEW, joined())
        assert await clicked(clicks, "ann") == {None: 1}
        more = COUNT.replace(" from o", ", count(*) as orders from o")
        await clicks.views.put(TOTALS, totals(more))
        await until(clicks, TOTALS, lambda status: status.active.number == 2)
        assert await clicked(clicks, "ann") == {None: 2}  # another column does not matter
        await clicks.views.put(TOTALS, totals(more.replace("sum(cents)", "avg(cents)")))
        await until(clicks, TOTALS, lambda status: status.active.number == 3)
        failure = await stops(clicks)
        await clicks.views.put(VIEW, joined())
        await until(clicks, VIEW, lambda status: status.active.number == 2)
        rows = await clicked(clicks, "ann")

    assert "view 'totals' has no column 'cents' of type bigint any more" in failure
    assert rows == {None: 4}


async def test_view_stops_without_the_other_one(clicks, working):
    async with working(VIEW_JOBS):
        await clicks.views.put(TOTALS, totals(COUNT))
        await clicks.views.put(VIEW, joined())
        await clicked(clicks, "ann")
        await clicks.views.delete(TOTALS)
        failure = await stops(clicks)
        put = await clicks.views.put(VIEW, replace(joined(), rows_max=10))

    assert failure == "The view 'totals' of a table was deleted."
    assert put.definition.spec.rows_max == 10  # other settings can be changed


async def test_view_stops_for_one_that_is_too_large(clicks, working, monkeypatch):
    monkeypatch.setattr(limits, "VIEW_TABLE_ROWS_MAX", 2)
    async with working(VIEW_JOBS):
        await clicks.views.put(TOTALS, totals(COUNT))
        await clicks.views.put(VIEW, joined())
        for person in ("ann", "bob"):
            await order(clicks, person=person, cents=1)
        assert await clicked(clicks, "ann") == {1: 1}
        await order(clicks, person="cid", cents=1)
        failure = await stops(clicks)

    assert "view 'totals' has more than 2 rows" in failure


async def test_final_rows_of_a_view_are_the_records_of_another_one(clicks, working):
    minutes = "select page, window(event_time, '1 minute').start as since, count(*) as clicks from c group by 1, 2"
    most = "select r.row.page, max(r.row.clicks) as clicks, max_by(r.row.since, r.row.clicks) as since from r group by r.row.page"
    final = StreamName("minutes")
    row = "row struct<page string, since timestamp, clicks bigint>"
    await clicks.catalog.put_stream(final, StreamSpec())
    timed = ViewInput(
        stream=CLICKS.name,
        columns="page string, at timestamp",
        event_time="at",
        watermark_ms=0,
    )
    first = ViewQuery(sql=minutes, inputs={"c": timed})
    second = ViewQuery(sql=most, inputs={"r": ViewInput(stream=final.name, columns=row)})
    sink = ViewSink(stream=final.name, emit=Emit.FINAL)
    pages = {"00": "a", "01": "aab", "02": "a", "05": "z"}
    async with working(VIEW_JOBS):
        await clicks.views.put(TOTALS, ViewSpec(query=first, into=(sink,)))
        await clicks.views.put(VIEW, ViewSpec(query=second))
        records = [
            replace(
                click(page), data=json.dumps({"page": page, "at": minute_of(nth)}).encode(), key="k"
            )
            for nth, every in pages.items()
            for page in every
        ]
        await put_clicks(clicks, *records)
        rows = await rows_at(clicks, {0: 3})

    assert [*map(json.loads, rows.rows)] == [
        {"page": "a", "clicks": 2, "since": f"{minute_of('01')[:-1]}.000000Z"},
        {"page": "b", "clicks": 1, "since": f"{minute_of('01')[:-1]}.000000Z"},
    ]


def minute_of(nth: str) -> str:
    return f"2026-12-01T10:{nth}:00Z"
