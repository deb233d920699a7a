"""Reads of rows: keys, prefixes, windows, pages, and reads that wait."""

import asyncio
from itertools import product

import msgspec
import pytest

from storage.domain.errors import ValidationFailed, ViewBehind, ViewNotFound
from storage.domain.names import ViewName
from storage.domain.views.rows import IncludedRecord, RowQuery
from tests.integration.views.conftest import MINUTE_MS, NAME, minute, row, spec_of

pytestmark = pytest.mark.one_store

ROWS = [*product(["cart", "home", "homes"], [-1, 2], [0, 1, 2])]


@pytest.fixture
async def reading(engines, worker, view):
    """Read rows of a view with 18 rows, as tuples."""
    await worker.commit(*(row(*values) for values in reversed(ROWS)), read=5)

    async def read(**options):
        page = await engines.view_rows.read(NAME, RowQuery(**options))
        rows = [msgspec.json.decode(each) for each in page.rows]
        return [(each["page"], each["n"], each["m"]) for each in rows], page

    return read


async def test_rows_are_in_the_order_of_their_keys(reading):
    rows, page = await reading()

    assert rows == ROWS
    assert (page.next_key, page.revision.progress.positions) == (None, {0: 5})
    assert (await reading(descending=True))[0] == ROWS[::-1]


async def test_rows_are_selected_by_key(reading):
    assert (await reading(key=("home",)))[0] == [one for one in ROWS if one[0] == "home"]
    assert (await reading(key=("home", "-1")))[0] == [("home", -1, nth) for nth in range(3)]
    assert (await reading(key=("home", "2", minute(1))))[0] == [("home", 2, 1)]
    assert (await reading(key=("home", "2", "1970-01-01T01:01:00+01:00")))[0] == [("home", 2, 1)]
    assert (await reading(key=("none",)))[0] == []


async def test_rows_are_selected_by_prefix(reading):
    assert (await reading(prefix="home"))[0] == [one for one in ROWS if one[0] != "cart"]
    assert (await reading(prefix="homes", descending=True))[0] == ROWS[:11:-1]


async def test_rows_are_selected_by_window(reading):
    rows, _ = await reading(window_from_ms=MINUTE_MS, window_to_ms=2 * MINUTE_MS)

    assert rows == [one for one in ROWS if one[2] == 1]
    assert (await reading(window_from_ms=3 * MINUTE_MS))[0] == []
    assert len((await reading(window_to_ms=1))[0]) == 6


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("latest", [False, True])
async def test_pages_have_each_row_once(reading, descending, latest):
    order = {"descending": descending, "latest": latest}
    wanted, _ = await reading(**order)

    rows, after = [], None
    while True:
        page_rows, page = await reading(**order, limit=4, after_key=after)
        rows += page_rows
        if (after := page.next_key) is None:
            break

    assert rows == wanted


async def test_latest_reads_newest_window_of_each_key(reading):
    newest = [one for one in ROWS if one[2] == 2]

    assert (await reading(latest=True))[0] == newest
    assert (await reading(latest=True, descending=True))[0] == newest[::-1]
    assert (await reading(latest=True, key=("home", "2")))[0] == [("home", 2, 2)]
    before, _ = await reading(latest=True, window_to_ms=2 * MINUTE_MS)
    assert before == [one for one in ROWS if one[2] == 1]


@pytest.mark.parametrize(
    ("options", "pointer"),
    [
        ({"key": ("home", "x")}, "/key/1"),
        ({"key": ("home", "1", "yesterday")}, "/key/2"),
        ({"key": ("home", "1", minute(0), "1")}, "/key/3"),
        ({"key": ("home",), "prefix": "1"}, "/prefix"),
        ({"prefix": "x" * 2_000}, "/prefix"),
    ],
)
async def test_values_that_do_not_fit_are_refused(reading, options, pointer):
    with pytest.raises(ValidationFailed) as refused:
        await reading(**options)

    assert refused.value.faults[0].pointer == pointer


async def test_view_without_rows_is_read(engines, view):
    page = await engines.view_rows.read(NAME, RowQuery())

    assert (page.rows, page.next_key) == ((), None)
    with pytest.raises(ViewNotFound):
        await engines.view_rows.read(ViewName("none"), RowQuery())


async def test_read_waits_for_a_record(engines, worker, reading):
    waiting = asyncio.create_task(
        reading(includes=IncludedRecord(0, 5), wait_ms=20_000, key=("new",))
    )
    await asyncio.sleep(0)

    await worker.commit(row("new", 1, 0))

    async with asyncio.timeout(4):  # the announcement arrives before the fallback
        rows, page = await waiting
    assert rows == [("new", 1, 0)]
    assert page.revision.progress.positions == {0: 6}


async def test_read_of_included_record_does_not_wait(reading):
    assert (await reading(includes=IncludedRecord(0, 4)))[0] == ROWS


async def test_read_ends_when_the_record_is_not_included(reading):
    with pytest.raises(ViewBehind) as behind:
        await reading(includes=IncludedRecord(0, 5), wait_ms=50)
    assert behind.value.facts == {"shard": 0, "position": 5}
    with pytest.raises(ViewBehind):
        await reading(includes=IncludedRecord(1, 0))


async def test_waiting_read_ends_when_a_new_revision_includes_record(engines, worker, reading):
    waiting = asyncio.create_task(reading(includes=IncludedRecord(0, 6), wait_ms=20_000))
    view = (await worker.put(spec_of("select 2"))).definition
    await worker.commit(row("new", 1, 0), read=7)
    building = (await engines.views.status(NAME)).building

    await engines.view_scans.promote(worker.claim, view, building.revision_id)

    rows, page = await waiting
    assert rows == [("new", 1, 0)]
    assert page.revision.number == 2


async def test_key_longer_than_its_limit_is_read(engines, worker, view):
    await worker.commit(row("x" * 2_000, 1, 0, clicks=7), row("x" * 2_000 + "y", 1, 0))

    page = await engines.view_rows.read(NAME, RowQuery(key=("x" * 2_000, "1", minute(0))))

    [shown] = page.rows
    assert b'"clicks":7' in shown
    assert len((await engines.view_rows.read(NAME, RowQuery(latest=True))).rows) == 2
