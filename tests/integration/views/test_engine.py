"""Engine of views: put, plan, change, pause, delete."""

import asyncio

import pytest

from consumers.maintenance.tasks.views import maintain_views
from storage.domain import limits
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR
from storage.domain.errors import (
    AlreadyExists,
    NamespaceInUse,
    PreconditionFailed,
    QuotaReached,
    ValidationFailed,
    ViewNotFound,
    ViewPlanPending,
)
from storage.domain.jobs import JobKind, JobState, RequestedState
from storage.domain.names import StreamName, ViewName
from storage.domain.quotas import Quotas
from storage.domain.streams.stream import StreamSpec
from storage.domain.views.plan import SqlRefusal
from storage.domain.views.progress import RevisionState
from storage.domain.views.sink import ViewSink
from storage.domain.views.view import View
from storage.views.scans import ViewConflict
from tests.integration.views.conftest import NAME, PLAN, STREAM, row, spec_of

pytestmark = pytest.mark.one_store

SCAN = (STREAM.namespace, JobKind.VIEW_SCAN, STREAM.name)


async def test_put_plans_query_and_submits_scan(engines, worker):
    put = await worker.put(spec_of())

    status = await engines.views.status(NAME)
    scan = await engines.jobs.open_of(*SCAN)
    assert (put.created, status.view, status.building) == (True, put.definition, None)
    assert (status.active.plan, status.active.number) == (PLAN, 1)
    assert status.active.state is RevisionState.ACTIVE
    assert scan.spec == {"stream": STREAM.name}


async def test_put_of_same_query_is_not_planned(engines, view):
    put = await engines.views.put(NAME, spec_of(rows_max=5))

    assert (put.definition.version, put.definition.spec.rows_max) == (2, 5)
    assert (await engines.views.status(NAME)).building is None


async def test_changed_query_is_built_beside_active_one(engines, worker, view):
    first = (await engines.views.status(NAME)).active

    await worker.put(spec_of("select 2"))
    await worker.put(spec_of("select 3"))

    status = await engines.views.status(NAME)
    assert status.active == first
    assert (status.building.number, status.building.query.sql) == (3, "select 3")
    revisions = await engines.view_scans.revisions(*SCAN[::2])
    assert [one.revision.number for one in revisions] == [1, 3]


async def test_refused_query_is_not_stored(engines, worker):
    refusal = SqlRefusal("It has no group", "Add `group by`", 1, 8)

    error = await worker.refuse(spec_of(), refusal)

    [fault] = error.faults
    assert (fault.pointer, fault.code) == ("/sql", "sql_refused")
    assert fault.detail == "Line 1, column 8: It has no group. Add `group by`"
    with pytest.raises(ViewNotFound):
        await engines.views.status(NAME)


async def test_put_without_worker_names_what_it_waits_for(engines, worker, monkeypatch):
    monkeypatch.setattr(limits, "VIEW_RESULT_WAIT_MS", 0)

    with pytest.raises(ViewPlanPending, match="millstream worker"):
        await engines.views.put(NAME, spec_of())


async def test_dry_run_plans_and_stores_nothing(engines, worker):
    put = await worker.put(spec_of(), dry_run=True)

    assert put.created
    assert await engines.views.plan("default", put.definition.spec.query) == PLAN
    assert await engines.jobs.open_of(*SCAN) is None
    with pytest.raises(ViewNotFound):
        await engines.views.get(NAME)


async def test_put_requires_an_existing_stream(engines):
    with pytest.raises(ValidationFailed) as refused:
        await engines.views.put(NAME, spec_of())

    assert refused.value.faults[0].pointer == "/from/c/stream"


async def test_put_checks_version_before_planning(engines, view):
    with pytest.raises(PreconditionFailed):
        await engines.views.put(NAME, spec_of("select 2"), if_match=9)
    with pytest.raises(AlreadyExists):
        await engines.views.put(NAME, spec_of("select 2"), create_only=True)


async def test_views_of_a_stream_are_limited(engines, worker, view, monkeypatch):
    monkeypatch.setattr(limits, "VIEWS_PER_STREAM_MAX", 1)
    await worker.put(spec_of("select 2"))

    with pytest.raises(QuotaReached):
        await engines.views.put(ViewName("other"), spec_of("select 2"))


async def test_recreated_stream_begins_a_revision(engines, worker, view):
    await engines.catalog.delete_stream(STREAM)
    await engines.catalog.put_stream(STREAM, StreamSpec())

    await engines.views.put(NAME, spec_of())

    status = await engines.views.status(NAME)
    assert status.building.stream_id != status.active.stream_id
    assert status.building.plan == status.active.plan


async def test_statuses_are_those_of_each_view(engines, worker, view):
    await engines.catalog.put_stream(StreamName("changes"), StreamSpec())
    others = list[View]()
    for name in ("with-sink", "deleted"):
        put, _ = await asyncio.gather(
            engines.views.put(
                ViewName(name), spec_of(f"select '{name}'", into=(ViewSink(stream="changes"),))
            ),
            worker.plans(),
        )
        others.append(put.definition)
    await engines.views.delete(others[1].name)

    statuses = await engines.views.statuses([view, *others])

    assert [status.view.name.name for status in statuses] == [NAME.name, "with-sink"]
    for status in statuses:
        assert status == await engines.views.status(status.view.name)


async def test_paused_view_is_not_scanned(engines, view):
    await engines.views.pause(NAME, paused=True)
    assert await engines.view_scans.revisions(*SCAN[::2]) == []

    await engines.views.pause(NAME, paused=False)
    [scanned] = await engines.view_scans.revisions(*SCAN[::2])
    assert scanned.view.version == 3


async def test_batch_of_a_view_that_was_paused_changes_nothing(engines, worker, view):
    """The batch that was computed while a view was paused was stored after the pause."""
    revision_id, batch = await worker.batch(row("home", 1, 0))
    await engines.views.pause(NAME, paused=True)

    with pytest.raises(ViewConflict):
        await engines.view_scans.commit(worker.claim, view, revision_id, batch)
    await engines.views.pause(NAME, paused=False)

    progress = await engines.view_scans.commit(worker.claim, view, revision_id, batch)
    assert progress.rows == 1


async def test_views_are_listed_by_name(engines, view):
    assert await engines.views.list_views("default", prefix="clicks") == [view]
    assert await engines.views.list_views("default", after=NAME.name) == []


async def test_deleted_view_loses_its_rows_in_pieces(engines, worker, view, monkeypatch):
    monkeypatch.setattr(limits, "VIEW_SWEEP_ROWS", 2)
    await worker.commit(*(row("home", number, 0) for number in range(3)))

    assert await engines.views.delete(NAME) == view

    assert [await engines.views.sweep() for _ in range(3)] == [2, 1, 0]
    assert await engines.view_scans.revisions(*SCAN[::2]) == []
    with pytest.raises(ViewNotFound):
        await engines.views.batches(NAME, 1)


async def test_scan_without_worker_ends_with_its_last_view(engines, worker):
    await worker.put(spec_of())
    job = await engines.jobs.open_of(*SCAN)

    await engines.views.delete(NAME)

    assert (await engines.jobs.get(job.job_id)).state is JobState.CANCELLED
    assert await engines.view_scan_jobs.ensure_all() == 0


async def test_scan_that_runs_goes_on_with_the_next_view(engines, worker, view):
    """A view that was put right after the last one was deleted stood still: its scan was cancelled."""
    await engines.views.delete(NAME)

    await worker.put(spec_of("select 2"))

    scan = await engines.jobs.open_of(*SCAN)
    assert await engines.jobs.heartbeat(worker.claim) is RequestedState.NONE
    assert (scan.job_id, scan.state) == (worker.claim.job_id, JobState.RUNNING)
    await worker.commit(row("home", 1, 0))


async def test_view_that_is_resumed_while_its_scan_ends_is_scanned(engines, worker, view):
    """A view that was resumed then stood still until maintenance, for up to 20 seconds."""
    await engines.views.pause(NAME, paused=True)
    assert await engines.view_scans.revisions(*SCAN[::2]) == []  # so the scan ends
    await engines.views.pause(NAME, paused=False)

    await engines.view_scan_jobs.end(worker.claim, {})

    scan = await engines.jobs.open_of(*SCAN)
    assert scan.job_id != worker.claim.job_id
    await engines.views.pause(NAME, paused=True)
    await engines.view_scan_jobs.end(worker.claim, {})  # as a repetition it changes nothing
    assert await engines.jobs.finish(worker.claim) is JobState.DONE


async def test_maintenance_submits_missing_scan(engines, worker, view):
    await engines.jobs.finish(worker.claim)

    assert await engines.view_scan_jobs.ensure_all() == 1
    assert await engines.jobs.open_of(*SCAN)
    assert await engines.view_scan_jobs.ensure_all() == 0


async def test_namespace_with_a_view_is_in_use(engines, worker):
    await engines.namespaces.put("tenant", Quotas())
    name, stream = ViewName(NAME.name, "tenant"), StreamName(STREAM.name, "tenant")
    await engines.catalog.put_stream(stream, StreamSpec())
    await asyncio.gather(engines.views.put(name, spec_of()), worker.plans())

    with pytest.raises(NamespaceInUse) as refused:
        await engines.namespaces.delete("tenant")

    assert refused.value.facts["holds"]["views"] == 1


async def test_audit_log_shows_the_query_of_a_view(engines, view):
    snapshot = await engines.audit_snapshots.of(LOCAL_ADMINISTRATOR, "views", NAME.name)

    assert snapshot["query"]["sql"] == "select 1"


async def test_sweeper_deletes_rows_and_submits_scans(engines, worker, view):
    await worker.commit(row("home", 1, 0))
    await engines.jobs.finish(worker.claim)

    assert await maintain_views.work(engines) == 1
    assert await engines.jobs.open_of(*SCAN)

    await engines.views.delete(NAME)
    assert await maintain_views.work(engines) == 1
    assert await maintain_views.work(engines) == 0
