"""History of rows: what a read returned after a batch, or at a time, can be read again."""

from random import Random

import pytest
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.errors import ValidationFailed, ViewHistoryExpired
from storage.domain.views.rows import IncludedRecord, RowQuery
from tests.integration.views.conftest import MINUTE_MS, NAME, minute, row, spec_of

pytestmark = pytest.mark.one_store

DAY_MS = limits.DAY_MS


@pytest.fixture
async def put(engines, worker):
    """Put the view with history, and claim its scan."""

    async def put(sql="select 1", **options):
        view = (await worker.put(spec_of(sql, history_ms=DAY_MS, **options))).definition
        await worker.start()
        return view

    return put


def output(page, clicks=1):
    """Return the row of a page as a read returns it."""
    return (row(page, 1, 0, clicks=clicks).row or "").encode()


async def pages(engines, **options):
    """Return all rows, two at a time, and what they are as of."""
    rows, after, at = [], None, options.pop("at_batch", None)
    while True:
        query = RowQuery(**options, at_batch=at, after_key=after, limit=2)
        page = await engines.view_rows.read(NAME, query)
        rows += page.rows
        progress = page.revision.progress
        as_of = progress.batch, progress.positions, progress.watermark_ms, progress.changed_at_ms
        if page.next_key is None:
            return rows, as_of
        after = page.next_key


@pytest.mark.parametrize("seed", range(4))
async def test_earlier_rows_are_those_that_a_read_returned(engines, worker, put, clock, seed):
    """Rows come, change, disappear behind `having`, expire, and are replaced by longer sessions."""
    chance = Random(seed)
    view = await put(keep_ms=3 * MINUTE_MS)
    seen = {}
    for batch in range(1, 25):
        changes = {}
        for _ in range(chance.randrange(6)):
            nth = batch // 4 + chance.randrange(3)
            change = row(chance.choice("abc"), 1, nth, clicks=chance.randrange(9))
            if chance.random() < 0.2:
                change = replace(change, row=None)
            elif chance.random() < 0.3:
                change = replace(change, replaces=(row(chance.choice("de"), 1, nth).key,))
            changes[change.key] = change
        added = {one: row(chance.choice("de"), 1, batch // 4) for one in range(chance.randrange(2))}
        await worker.commit(
            *changes.values(), *added.values(), watermark_ms=batch * MINUTE_MS // 4, view=view
        )
        seen[batch] = clock.now_ms(), await pages(engines)
        clock.advance(chance.randrange(3))
        if chance.random() < 0.1:
            await engines.views.sweep()

    last_at = {at: batch for batch, (at, _) in seen.items()}
    for batch, (at_ms, expected) in seen.items():
        assert await pages(engines, at_batch=batch) == expected
        descending, _ = await pages(engines, at_batch=batch, descending=True)
        assert descending == expected[0][::-1]
        assert await pages(engines, at_ms=at_ms) == seen[last_at[at_ms]][1]


async def test_selections_apply_to_earlier_rows(engines, worker, put):
    await put()
    await worker.commit(row("home", 1, 0), row("home", 1, 1), row("cart", 1, 0, clicks=5))
    await worker.commit(row("home", 1, 1, clicks=2), row("home", 1, 2), row("cart", 1, 0))

    async def read(**options):
        page = await engines.view_rows.read(NAME, RowQuery(at_batch=1, **options))
        return [*page.rows]

    [cart, first, second] = await read()
    assert await read(key=("home",)) == [first, second]
    assert await read(prefix="c") == [cart]
    assert await read(key=("home", "1", minute(1))) == [second]
    assert await read(latest=True) == [cart, second]
    assert await read(window_from_ms=MINUTE_MS) == [second]
    assert b'"clicks":5' in cart


async def test_history_begins_when_it_is_configured(engines, worker, view):
    await worker.commit(row("a", 1, 0))
    with pytest.raises(ViewHistoryExpired, match="history_seconds"):
        await engines.view_rows.read(NAME, RowQuery(at_batch=1))

    view = (await engines.views.put(NAME, spec_of(history_ms=DAY_MS))).definition
    await worker.commit(row("a", 1, 0, clicks=2))
    await worker.commit(row("a", 1, 0, clicks=3))

    assert (await pages(engines, at_batch=1))[0] == [output("a")]
    assert (await pages(engines, at_batch=2))[0] == [output("a", clicks=2)]
    for at in ({"at_batch": 0}, {"at_batch": 4}, {"at_ms": view.created_at_ms - 1}):
        with pytest.raises(ViewHistoryExpired, match="from 20"):
            await engines.view_rows.read(NAME, RowQuery(**at))


async def test_history_ends_when_it_is_not_configured_any_more(engines, worker, put):
    await put()
    await worker.commit(row("a", 1, 0))
    await worker.commit(row("a", 1, 0, clicks=2))

    await engines.views.put(NAME, spec_of())
    with pytest.raises(ViewHistoryExpired):
        await engines.view_rows.read(NAME, RowQuery(at_batch=1))
    assert await engines.views.sweep() == 1

    await engines.views.put(NAME, spec_of(history_ms=DAY_MS))
    with pytest.raises(ViewHistoryExpired):
        await engines.view_rows.read(NAME, RowQuery(at_batch=1))
    assert len((await pages(engines, at_batch=2))[0]) == 1


async def test_versions_are_deleted_after_their_time(engines, worker, put, clock):
    await put()
    for clicks in range(4):
        await worker.commit(row("a", 1, 0, clicks=clicks))
        clock.advance(DAY_MS // 2)

    # the rows of a day ago are those of the third batch
    assert await engines.views.sweep() == 2
    assert (await pages(engines, at_batch=3))[0] == [output("a", clicks=2)]
    with pytest.raises(ViewHistoryExpired):
        await engines.view_rows.read(NAME, RowQuery(at_batch=2))


async def test_number_of_versions_is_limited(engines, worker, put, monkeypatch):
    await put()
    monkeypatch.setattr(limits, "VIEW_HISTORY_VERSIONS_MAX", 3)
    for clicks in range(9):
        await worker.commit(row("a", 1, 0, clicks=clicks))
        assert await engines.views.sweep() == (clicks > 3)

    # eight versions were stored, of which three are kept: those of the batches 6, 7 and 8
    assert (await pages(engines, at_batch=6))[0] == [output("a", clicks=5)]
    with pytest.raises(ViewHistoryExpired):
        await engines.view_rows.read(NAME, RowQuery(at_batch=5))


async def test_batches_with_history_are_kept(engines, worker, put, monkeypatch):
    view = await put()
    monkeypatch.setattr(limits, "VIEW_BATCHES_MAX", 2)
    for clicks in range(5):
        await worker.commit(row("a", 1, 0, clicks=clicks))
    assert (await pages(engines, at_batch=1))[0] == [output("a", clicks=0)]

    await engines.views.put(NAME, replace(view.spec, history_ms=0))
    await worker.commit()
    revision = (await engines.views.status(NAME)).active
    assert [one.batch for one in await engines.views._rows.batches(revision.revision_id, 9)] == [
        *(6, 5, 4),
        3,
    ]


async def test_history_begins_anew_with_another_revision(engines, worker, put):
    await put()
    await worker.commit(row("a", 1, 0))
    view = (await worker.put(spec_of("select 2", history_ms=DAY_MS))).definition
    await worker.commit(row("b", 1, 0))
    await worker.commit(row("b", 1, 0, clicks=2))
    building = (await engines.views.status(NAME)).building
    await engines.view_scans.promote(worker.claim, view, building.revision_id)
    await worker.commit(row("b", 1, 0, clicks=3))

    assert (await pages(engines, at_batch=2))[0] == [output("b", clicks=2)]
    with pytest.raises(ViewHistoryExpired):
        await engines.view_rows.read(NAME, RowQuery(at_batch=1))
    assert [await engines.views.sweep() for _ in range(2)] == [1, 0]


async def test_promotion_sees_history_that_was_just_configured(engines, worker, view):
    """The scan has the view as it was when it last looked."""
    before = (await worker.put(spec_of("select 2"))).definition
    await worker.commit(row("b", 1, 0))
    await engines.views.put(NAME, spec_of("select 2", history_ms=DAY_MS))
    building = (await engines.views.status(NAME)).building
    await engines.view_scans.promote(worker.claim, before, building.revision_id)
    await worker.commit(row("b", 1, 0, clicks=2))

    assert (await pages(engines, at_batch=1))[0] == [output("b")]


async def test_time_does_not_go_back(engines, worker, put, clock):
    """Another worker's clock may be behind: batches are found by their times."""
    await put()
    await worker.commit(row("a", 1, 0))
    at_ms = clock.now_ms()
    clock.advance(-5_000)
    progress = await worker.commit(row("a", 1, 0, clicks=2))

    assert progress.changed_at_ms == at_ms
    assert (await pages(engines, at_ms=at_ms))[1][0] == 2


@pytest.mark.parametrize(
    "query", [RowQuery(at_ms=1, at_batch=1), RowQuery(at_batch=1, includes=IncludedRecord(0, 0))]
)
async def test_moment_is_unambiguous(engines, put, query):
    await put()
    with pytest.raises(ValidationFailed):
        await engines.view_rows.read(NAME, query)
