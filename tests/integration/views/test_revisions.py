"""Revisions of views: former ones that are kept, rollbacks, rebuilds and their reports."""

import pytest
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.errors import ViewRevisionNotFound
from storage.domain.names import StreamName
from storage.domain.streams.stream import StreamSpec
from storage.domain.views.progress import RevisionState
from storage.domain.views.rows import RowQuery
from storage.domain.views.sources import SourceMode
from storage.domain.views.view import ViewInput, ViewQuery, ViewSpec
from tests.integration.views.conftest import NAME, STREAM, minute, row, spec_of

pytestmark = pytest.mark.one_store

SCAN = STREAM.namespace, STREAM.name
KEPT = {"keep_former_ms": limits.DAY_MS}


async def replaced(engines, worker, *rows):
    """Put another query, and let its revision replace the present one with these rows."""
    put = await worker.put(spec_of("select 2", **KEPT))
    await worker.commit(*rows)
    building = (await engines.views.status(NAME)).building
    await engines.view_scans.promote(worker.claim, put.definition, building.revision_id)
    return put.definition


async def test_former_revision_is_kept_and_scanned(engines, worker, view):
    await worker.commit(row("home", 1, 0))
    await replaced(engines, worker, row("new", 1, 0))

    status = await engines.views.status(NAME)
    scanned = await engines.view_scans.revisions(*SCAN)
    assert (status.active.number, status.former.number) == (2, 1)
    assert status.former.query.sql == "select 1"
    assert [one.revision.state for one in scanned] == [RevisionState.ACTIVE, RevisionState.FORMER]
    assert await engines.views.sweep() == 0


async def test_former_revision_answers_again_after_a_rollback(engines, worker, view):
    await worker.commit(row("home", 1, 0))
    before = await replaced(engines, worker, row("new", 1, 0))
    former = (await engines.views.status(NAME)).former

    rolled_back = await engines.views.roll_back(NAME, if_match=before.version)
    building = (await engines.views.status(NAME)).building
    await engines.view_scans.promote(worker.claim, rolled_back, building.revision_id)

    status = await engines.views.status(NAME)
    assert rolled_back.spec.query.sql == "select 1"
    assert (building.revision_id, building.number) == (former.revision_id, 3)
    assert status.active.revision_id == former.revision_id
    assert (status.active.number, status.former.query.sql) == (3, "select 2")
    page = await engines.view_rows.read(NAME, RowQuery())
    assert b"home" in page.rows[0]


async def test_rollback_of_a_rebuild_returns_to_its_rows(engines, worker, view):
    """A rebuild has fewer rows when retention has deleted records; its query is the same."""
    view = (await engines.views.put(NAME, spec_of(keep_former_ms=limits.DAY_MS))).definition
    await worker.commit(row("home", 1, 0), row("old", 1, 0))
    await engines.views.rebuild(NAME)
    await worker.commit(row("home", 1, 0))
    building = (await engines.views.status(NAME)).building
    await engines.view_scans.promote(worker.claim, view, building.revision_id)

    rolled_back = await engines.views.roll_back(NAME)
    building = (await engines.views.status(NAME)).building
    await engines.view_scans.promote(worker.claim, rolled_back, building.revision_id)

    assert rolled_back == view
    assert (await engines.views.status(NAME)).active.report is None
    assert len((await engines.view_rows.read(NAME, RowQuery())).rows) == 2


async def test_put_of_former_query_is_a_rollback(engines, worker, view):
    await replaced(engines, worker)

    await engines.views.put(NAME, spec_of("select 1", **KEPT))  # no worker plans it

    status = await engines.views.status(NAME)
    assert (status.building.number, status.former) == (3, None)


async def test_put_of_active_query_ends_what_is_built(engines, worker, view):
    await worker.put(spec_of("select 2"))

    await engines.views.put(NAME, spec_of("select 1"))

    status = await engines.views.status(NAME)
    assert (status.active.number, status.building) == (1, None)


async def test_former_revision_is_deleted_after_its_time(engines, worker, view, clock):
    await worker.commit(row("home", 1, 0))
    await replaced(engines, worker, row("new", 1, 0))

    clock.advance(limits.DAY_MS)

    assert await engines.views.sweep() == 1
    assert (await engines.views.status(NAME)).former is None
    with pytest.raises(ViewRevisionNotFound, match="keep_former_seconds"):
        await engines.views.roll_back(NAME)


async def test_former_revision_is_deleted_when_none_is_kept(engines, worker, view):
    await replaced(engines, worker)

    await engines.views.put(NAME, spec_of("select 2"))

    assert (await engines.views.status(NAME)).former is None


async def test_stopped_revision_is_not_kept(engines, worker, view):
    revision_id = (await engines.views.status(NAME)).active.revision_id
    put = await worker.put(spec_of("select 2", **KEPT))
    await engines.view_scans.fail(worker.claim, revision_id, "broken", stop=True)

    building = (await engines.views.status(NAME)).building
    await engines.view_scans.promote(worker.claim, put.definition, building.revision_id)

    assert (await engines.views.status(NAME)).former is None


async def test_rebuilt_revision_is_compared(engines, worker, view):
    same, gone = row("same", 1, 0), row("gone", 1, 0)
    await worker.commit(same, gone, row("home", 1, 0, clicks=5), read=9)
    await engines.views.rebuild(NAME)
    await worker.commit(same, row("home", 1, 0, clicks=4), row("new", 1, 0), read=9)

    status = await engines.views.status(NAME)
    assert (status.building.number, status.building.is_rebuild) == (2, True)
    await engines.view_scans.promote(worker.claim, view, status.building.revision_id)

    report = (await engines.views.status(NAME)).active.report
    assert (report.former, report.is_exact) == (1, True)
    assert (report.records, report.former_records) == (9, 9)
    assert (report.added, report.removed, report.changed) == (1, 1, 1)
    assert {(one.before, one.after) for one in report.samples} == {
        (gone.row, None),
        (None, row("new", 1, 0).row),
        (row("home", 1, 0, clicks=5).row, row("home", 1, 0, clicks=4).row),
    }


async def test_rebuild_of_equal_rows_reports_no_difference(engines, worker, view):
    await worker.commit(row("home", 1, 0), read=9)
    await engines.views.rebuild(NAME)
    await worker.commit(row("home", 1, 0), read=8)

    building = (await engines.views.status(NAME)).building
    scans, revision_id = engines.view_scans, building.revision_id
    await scans.promote(worker.claim, view, revision_id, is_exact=False)

    report = (await engines.views.status(NAME)).active.report
    assert (report.is_exact, report.records, report.former_records) == (False, 8, 9)
    assert (report.added, report.removed, report.changed, report.samples) == (0, 0, 0, ())


async def test_rebuild_of_another_query_is_not_compared(engines, worker, view):
    await worker.commit(row("home", 1, 0))
    await worker.put(spec_of("select 2"))

    await engines.views.rebuild(NAME)

    building = (await engines.views.status(NAME)).building
    assert (building.query.sql, building.is_rebuild) == ("select 2", False)


async def test_sources_need_the_right_to_read_the_stream_of_the_row(engines, worker):
    """A view whose next revision reads another stream shows the records of the present one."""
    tracked = spec_of("select 1")
    await worker.put(replace(tracked, query=replace(tracked.query, sources=SourceMode.RANGE)))
    await worker.start()
    await engines.catalog.put_stream(StreamName("mine"), StreamSpec())
    own = ViewQuery(sql="select 2", inputs={"c": ViewInput(stream="mine")})
    await worker.put(ViewSpec(query=own))
    asked = list[StreamName]()

    await engines.view_sources.read(NAME, ["home", "1", minute(0)], authorise=asked.append)

    assert asked == [STREAM]


async def test_put_keeps_a_rebuild_that_runs(engines, worker, view):
    await engines.views.rebuild(NAME, if_match=view.version)

    await engines.views.put(NAME, spec_of(rows_max=7))

    assert (await engines.views.status(NAME)).building.is_rebuild
