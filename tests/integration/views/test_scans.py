"""Batches of views as a worker commits them: claims, positions, limits, expiry, promotion."""

import asyncio
from typing import LiteralString

import psycopg
import pytest
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.jobs import LeaseLost
from storage.domain.views.progress import RevisionState, ViewCounts
from storage.domain.views.rows import RowQuery
from storage.postgres.database import conninfo
from storage.views.scans import ViewConflict, ViewTooLarge
from tests.conditions import eventually
from tests.integration.views.conftest import MINUTE_MS, NAME, row, spec_of

pytestmark = pytest.mark.one_store


async def rows_of(engines) -> list[bytes]:
    return [*(await engines.view_rows.read(NAME, RowQuery())).rows]


async def test_batch_stores_rows_and_progress(engines, worker, view, clock):
    progress = await worker.commit(row("home", 1, 0), row("cart", 1, 0), read=5)

    active = (await engines.views.status(NAME)).active
    assert active.progress == progress
    assert (progress.positions, progress.batch, progress.rows) == ({0: 5}, 1, 2)
    assert progress.changed_at_ms == clock.now_ms()
    assert len(await rows_of(engines)) == 2


async def test_batch_replaces_rows_of_the_same_keys(engines, worker, view):
    first = row("home", 1, 0)
    await worker.commit(first, row("cart", 1, 0))

    progress = await worker.commit(row("home", 1, 0, clicks=7), row("home", 2, 0))

    revision_id = (await engines.views.status(NAME)).active.revision_id
    assert progress.rows == 3
    assert await engines.view_scans.states(revision_id, [first.key, b"none"]) == {
        first.key: ("state of 7", {}, MINUTE_MS)
    }


async def test_states_of_no_keys_are_none(engines, view):
    assert await engines.view_scans.states("none", []) == {}


async def test_row_excluded_by_having_is_not_read(engines, worker, view):
    hidden = replace(row("home", 1, 0), row=None)

    assert (await worker.commit(hidden, row("cart", 1, 0))).rows == 2

    [shown] = await rows_of(engines)
    assert b"cart" in shown
    await worker.commit(row("home", 1, 0))
    assert len(await rows_of(engines)) == 2


async def test_batch_is_committed_once(engines, worker, view):
    revision_id, batch = await worker.batch(row("home", 1, 0))
    await engines.view_scans.commit(worker.claim, view, revision_id, batch)

    with pytest.raises(ViewConflict):
        await engines.view_scans.commit(worker.claim, view, revision_id, batch)

    assert (await engines.views.status(NAME)).active.progress.batch == 1


async def test_batch_of_lost_claim_changes_nothing(engines, worker, view):
    lost = worker.claim
    await engines.jobs.release(lost)
    await worker.start("w2")
    revision_id, batch = await worker.batch(row("home", 1, 0))

    with pytest.raises(LeaseLost):
        await engines.view_scans.commit(lost, view, revision_id, batch)
    with pytest.raises(LeaseLost):
        await engines.view_scans.fail(lost, revision_id, "late", stop=True)

    assert await rows_of(engines) == []
    assert not (await engines.views.status(NAME)).active.is_stopped


async def test_batch_beyond_rows_max_changes_nothing(engines, worker, view):
    small = replace(view, spec=replace(view.spec, rows_max=2))
    await worker.commit(row("home", 1, 0), row("home", 2, 0), view=small)

    with pytest.raises(ViewTooLarge, match="3 rows"):
        await worker.commit(row("home", 3, 0), view=small)

    progress = await worker.commit(row("home", 2, 0), view=small)
    assert (progress.batch, progress.rows) == (2, 2)


async def test_windows_behind_keep_are_deleted(engines, worker, view):
    keeping = replace(view, spec=replace(view.spec, keep_ms=MINUTE_MS))
    await worker.commit(row("home", 1, 0), row("home", 1, 1), view=keeping, watermark_ms=0)

    progress = await worker.commit(view=keeping, watermark_ms=2 * MINUTE_MS)

    [batch, _] = await engines.views.batches(NAME, 10)
    [kept] = await rows_of(engines)
    assert (progress.rows, batch.rows) == (1, 1)
    assert b'"m":1' in kept


async def test_batch_deletes_a_bounded_number_of_rows(engines, worker, view, monkeypatch):
    monkeypatch.setattr(limits, "VIEW_SWEEP_ROWS", 2)
    keeping = replace(view, spec=replace(view.spec, keep_ms=0))
    rows = [row("home", 1, nth) for nth in range(5)]
    await worker.commit(*rows, view=keeping)

    left = [(await worker.commit(view=keeping, watermark_ms=10 * MINUTE_MS)).rows for _ in range(3)]

    assert left == [3, 1, 0]


async def test_batches_are_listed_newest_first(engines, worker, view, monkeypatch):
    monkeypatch.setattr(limits, "VIEW_BATCHES_MAX", 2)
    for nth in range(3):
        await worker.commit(row("home", 1, 0), read=10, watermark_ms=nth)

    batches = await engines.views.batches(NAME, 10)

    assert [batch.batch for batch in batches] == [3, 2]
    assert (batches[0].before, batches[0].after) == ({0: 20}, {0: 30})
    assert (batches[0].counts, batches[0].rows) == (ViewCounts(records=10), 1)


async def test_promoted_revision_answers_reads(engines, worker, view):
    await worker.commit(row("home", 1, 0))
    await worker.put(spec_of("select 2"))
    await worker.commit(row("new", 1, 0))
    building = (await engines.views.status(NAME)).building
    assert b"home" in (await rows_of(engines))[0]

    for _ in range(2):
        await engines.view_scans.promote(worker.claim, view, building.revision_id)

    status = await engines.views.status(NAME)
    assert (status.active.revision_id, status.building) == (building.revision_id, None)
    assert status.active.state is RevisionState.ACTIVE
    assert b"new" in (await rows_of(engines))[0]
    assert await engines.views.sweep() == 1


async def test_replaced_revision_takes_no_batches(engines, worker, view):
    await worker.put(spec_of("select 2"))
    revision_id, batch = await worker.batch(row("home", 1, 0))
    await worker.put(spec_of("select 3"))

    with pytest.raises(ViewConflict):
        await engines.view_scans.commit(worker.claim, view, revision_id, batch)
    with pytest.raises(ViewConflict):
        await engines.view_scans.promote(worker.claim, view, revision_id)
    await engines.view_scans.fail(worker.claim, revision_id, "gone", stop=True)


BLOCKED = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
CHANGES: dict[str, LiteralString] = {
    "pause": "update views set spec = jsonb_set(spec, '{paused}', 'true')",
    "deletion": "update view_revisions set state = 'deleted'",
}


@pytest.mark.parametrize("change", CHANGES)
async def test_batch_that_waited_for_a_change_sees_it(engines, worker, view, database_url, change):
    """The lock looks at the rows again, which its snapshot has as they were before it waited."""
    revision_id, batch = await worker.batch(row("home", 1, 0))
    async with await psycopg.AsyncConnection.connect(conninfo(database_url)) as changing:
        await changing.execute("select from views for update")
        await changing.execute(CHANGES[change])
        committing = asyncio.create_task(
            engines.view_scans.commit(worker.claim, view, revision_id, batch)
        )
        async with await psycopg.AsyncConnection.connect(conninfo(database_url)) as watching:
            await eventually(lambda: _count(watching), 1)
        await changing.commit()

        with pytest.raises(ViewConflict):
            await committing


async def _count(connection: psycopg.AsyncConnection) -> int:
    [count] = await (await connection.execute(BLOCKED)).fetchone() or [0]
    return int(count)


async def test_failures_in_a_row_stop_a_revision(engines, worker, view, monkeypatch):
    monkeypatch.setattr(limits, "VIEW_FAILURES_MAX", 2)
    revision_id = (await engines.views.status(NAME)).active.revision_id

    async def fail():
        await engines.view_scans.fail(worker.claim, revision_id, "no memory", stop=False)
        active = (await engines.views.status(NAME)).active
        return active.failures, active.is_stopped, active.failure

    assert await fail() == (1, False, "no memory")
    progress = await worker.commit(row("home", 1, 0))
    assert await fail() == (1, False, "no memory")
    assert await fail() == (2, True, "no memory")
    assert (await engines.views.status(NAME)).active.progress == progress


@pytest.mark.parametrize("how", ["put", "resume"])
async def test_stopped_revision_continues(engines, worker, view, how):
    revision_id = (await engines.views.status(NAME)).active.revision_id
    await engines.view_scans.fail(worker.claim, revision_id, "too large", stop=True)
    assert await engines.view_scans.revisions("default", "clicks") == []
    [stopped] = await engines.views.stopped("default")

    if how == "put":
        await engines.views.put(NAME, spec_of())
    else:
        await engines.views.pause(NAME, paused=False)

    [scanned] = await engines.view_scans.revisions("default", "clicks")
    assert (scanned.revision.failures, scanned.revision.failure) == (0, "")
    assert (stopped.view.name, stopped.revision.failure) == (NAME, "too large")
    assert await engines.views.stopped("default") == []


async def test_each_view_that_has_stopped_is_named_once(engines, worker, view):
    """Also for a revision that is being built; a view that is paused waits for its owner."""
    await engines.views.rebuild(NAME)
    status = await engines.views.status(NAME)
    await engines.view_scans.fail(worker.claim, status.building.revision_id, "later", stop=True)
    building = await engines.views.stopped("default")
    await engines.view_scans.fail(worker.claim, status.active.revision_id, "now", stop=True)
    both = await engines.views.stopped("default")
    elsewhere = await engines.views.stopped("other")
    await engines.views.pause(NAME, paused=True)

    assert [one.revision.failure for one in building] == ["later"]
    assert [one.revision.failure for one in both] == ["now"]
    assert elsewhere == await engines.views.stopped("default") == []
