"""View engine: definitions, and the revisions that their queries begin.

    put ─▶ plan a new query, by a job ─▶ one transaction: definition, and a revision that is built ─▶ ensure the scan job

The first revision of a view is active at once. A later one is built beside the active one, which answers until then.
"""

from collections.abc import Sequence
from typing import NamedTuple, Unpack

from storage.catalog.catalog import Catalog
from storage.catalog.definition_store import DefinitionRules, DefinitionStore
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.definitions import Put, PutOptions, check_version, with_changes
from storage.domain.errors import (
    MillstreamError,
    QuotaReached,
    StorageBusy,
    StreamNotFound,
    ValidationFailed,
    ViewNotFound,
    ViewRevisionNotFound,
)
from storage.domain.names import StreamName, ViewName, new_log_id
from storage.domain.streams.stream import Stream
from storage.domain.views.plan import ViewPlan
from storage.domain.views.progress import (
    BatchRecord,
    RevisionState,
    StreamProgress,
    ViewProgress,
    ViewRevision,
)
from storage.domain.views.sink import SinkState
from storage.domain.views.view import View, ViewQuery, ViewSpec
from storage.postgres.repositories.views import LockedView, ViewRows, ViewWithRevision
from storage.postgres.repositories.views import ViewWithRevision as StoppedView
from storage.views.query_planner import ViewQueryPlanner
from storage.views.scan_jobs import ScanJobs
from storage.views.sink_checks import check_cycle, check_rows_of_sinks, check_sinks
from storage.views.sinks import ViewSinks

__all__ = ["StoppedView", "ViewStatus", "Views"]

_CHANGED = "The view or its stream was changed at the same time; nothing happened. Try again."


class ViewStatus(NamedTuple):
    """A view, the revision that answers reads, the one that replaces it, and the former one."""

    view: View
    active: ViewRevision
    building: ViewRevision | None
    former: ViewRevision | None
    sinks: Sequence[SinkState]


class Views:
    """The views of a deployment.

    Every verb raises ViewNotFound for a view that does not exist.
    """

    def __init__(
        self,
        *,
        rows: ViewRows,
        catalog: Catalog,
        planner: ViewQueryPlanner,
        sinks: ViewSinks,
        scan_jobs: ScanJobs,
        clock: Clock,
    ) -> None:
        self._rows = rows
        self._sinks = sinks
        self._catalog = catalog
        self._scan_jobs = scan_jobs
        self._clock = clock
        self._store: DefinitionStore[ViewName, ViewSpec, View, LockedView] = DefinitionStore(
            rows, _RULES, clock
        )
        self.plan = planner.plan
        """Return the plan of a query; see `ViewQueryPlanner.plan`."""
        self.with_columns = planner.with_columns
        """Return a configuration with the columns of views; see `ViewQueryPlanner.with_columns`."""
        self.get = self._store.get
        self.list_views = self._store.page

    async def put(self, name: ViewName, spec: ViewSpec, **options: Unpack[PutOptions]) -> Put[View]:
        """Create the view or replace its configuration; a revision that has stopped continues.

        It stays as it is if its stream was deleted. A new query is planned first, also for a dry run. Raises ValidationFailed,
        ViewPlanPending, PreconditionFailed, AlreadyExists, QuotaReached for too many views over the stream; StorageBusy if another
        call changes the view meanwhile.
        """
        spec.check()
        before = await self._rows.find(name)
        spec = await self.with_columns(name, spec, before)
        check_version(before, options.get("if_match"))
        is_new = before is None or before.spec.query != spec.query
        streams = await self._streams(name, spec.query, required=is_new)
        is_refused = before is not None and options.get("create_only", False)
        plan = None if is_refused else await self._checked_plan(name, spec, before)
        dry_run = options.get("dry_run", False)
        async with self._rows.lock(name, dry_run=dry_run) as locked:
            revisions = await locked.revisions()
            put = await self._store.put_locked(locked, name, spec, **options)
            view = put.definition
            await _check_cycle(locked, view)
            await locked.delete_removed_sinks(view)
            if streams:
                await locked.restart(view)
            if not revisions or not _reads(revisions[0], spec.query, streams):
                await self._begin(locked, view, revisions, plan, streams)
            if not view.spec.keep_former_ms:
                await locked.end(view.view_id, RevisionState.FORMER)
            await locked.keep_history(view)
        if streams and not dry_run:
            await self._scan_jobs.ensure(streams[0].name)
        return put

    async def roll_back(self, name: ViewName, *, if_match: int | None = None) -> View:
        """Put the query of the former revision, which answers again once it has caught up.

        Raises ViewRevisionNotFound, ValidationFailed for sinks that do not fit its rows, and StorageBusy if another call changes the
        view meanwhile.
        """
        status = await self.status(name)
        if status.former is None:
            detail = f"View '{name.name}' has no former revision; `keep_former_seconds` keeps one."
            raise ViewRevisionNotFound(detail)
        spec = with_changes(status.view.spec, query=status.former.query)
        check_rows_of_sinks(spec, status.former.plan)
        async with self._store.changing(name, if_match) as (locked, current):
            newest, *_ = revisions = await locked.revisions()
            former_ids = {one.revision_id for one in revisions if one.state is RevisionState.FORMER}
            is_same = current.version == status.view.version
            if not is_same or status.former.revision_id not in former_ids:
                raise StorageBusy(_CHANGED)
            options = PutOptions(replace_pause=True)
            put = await self._store.put_locked(locked, name, spec, **options)
            await _check_cycle(locked, put.definition)
            await locked.restart(put.definition)
            await locked.reactivate(status.former, newest.number + 1)
        await self._scan_jobs.ensure(_stream_of(put.definition))
        return put.definition

    async def rebuild(self, name: ViewName, *, if_match: int | None = None) -> View:
        """Build a revision of the present query, in place of one that is being built.

        When it replaces the active one, their rows are compared if that has the same query. Raises ValidationFailed if its stream was deleted.
        """
        current = await self.get(name)
        streams = await self._streams(name, current.spec.query, required=True)
        async with self._store.changing(name, if_match) as (locked, view):
            revisions = await locked.revisions()
            if view.spec.query != current.spec.query:
                raise StorageBusy(_CHANGED)
            [same, *_] = [one for one in revisions if one.query == view.spec.query]
            revision = self._revision(view, same.plan, streams, revisions)
            is_rebuild = any(
                one.state is RevisionState.ACTIVE and one.query == same.query for one in revisions
            )
            await locked.begin(with_changes(revision, is_rebuild=is_rebuild), streams[0].name)
        await self._scan_jobs.ensure(streams[0].name)
        return view

    async def pause(self, name: ViewName, *, paused: bool, if_match: int | None = None) -> View:
        """Pause the view, or resume it; a revision that has stopped continues then."""
        async with self._store.changing(name, if_match) as (locked, current):
            view = await self._store.pause_locked(locked, current, paused=paused)
            if not paused:
                await locked.restart(view)
        if not paused:
            await self._scan_jobs.ensure(_stream_of(view))
        return view

    async def delete(self, name: ViewName, *, if_match: int | None = None) -> View:
        """Delete the view; its rows are deleted by a maintenance task. Returns its definition.

        Pending messages of its sinks are deleted too.
        """
        revisions = [revision.number for _, revision in await self._rows.with_revisions(name)]
        view = await self._store.delete(name, if_match=if_match)
        await self._sinks.retire(view, max(revisions, default=0))
        await self._scan_jobs.cancel_waiting(_stream_of(view))
        return view

    async def status(self, name: ViewName) -> ViewStatus:
        """Return the view with its revisions, as Postgres has them now."""
        statuses = await self._statuses(await self._rows.with_revisions(name))
        if not statuses:
            raise _not_found(name)
        return statuses[0]

    async def statuses(self, views: Sequence[View]) -> list[ViewStatus]:
        """Return the views with their revisions, less those that were deleted meanwhile."""
        ids = [view.view_id for view in views]
        return await self._statuses(await self._rows.with_revisions_of(ids))

    async def _statuses(self, pairs: Sequence[ViewWithRevision]) -> list[ViewStatus]:
        views = {view.view_id: view for view, _ in pairs}
        by_state = {(revision.view_id, revision.state): revision for _, revision in pairs}
        sinks = await self._sinks.states([*views.values()])
        return [
            ViewStatus(
                view,
                by_state[view_id, RevisionState.ACTIVE],
                by_state.get((view_id, RevisionState.BUILDING)),
                by_state.get((view_id, RevisionState.FORMER)),
                sinks[view_id],
            )
            for view_id, view in views.items()
        ]

    async def stopped(self, namespace: str) -> list[StoppedView]:
        """Return views, each with a revision that has stopped: the active one if it has.

        At most VIEWS_STOPPED_MAX revisions are looked at. Views that are paused are left out.
        """
        by_view = dict[str, StoppedView]()
        for stopped in await self._rows.stopped(namespace, limits.VIEWS_STOPPED_MAX):
            by_view.setdefault(stopped.view.view_id, stopped)
        return [*by_view.values()]

    async def plan_of(self, view: View) -> ViewPlan:
        """Return the plan of a view that was put, or would be by a dry run."""
        return await self._plan(view.name, view.spec.query)

    async def _plan(self, name: ViewName, query: ViewQuery) -> ViewPlan:
        for _, revision in await self._rows.with_revisions(name):
            if revision.query == query:
                return revision.plan
        return await self.plan(name.namespace, query)

    async def plan_for(self, name: ViewName, spec: ViewSpec) -> ViewPlan:
        """Return the plan of a checked configuration whose sinks fit its rows.

        The sinks need not exist. `spec` is one that `with_columns` has returned. Raises ValidationFailed, and ViewPlanPending.
        """
        await self._streams(name, spec.query, required=True)
        plan = await self._plan(name, spec.query)
        check_rows_of_sinks(spec, plan)
        return plan

    async def batches(self, name: ViewName, limit: int) -> list[BatchRecord]:
        """Return the last batches of the active revision, the newest first."""
        limit = max(1, min(limit, limits.VIEW_BATCHES_MAX))
        for _, revision in await self._rows.with_revisions(name):
            if revision.state is RevisionState.ACTIVE:
                return await self._rows.batches(revision.revision_id, limit)
        raise _not_found(name)

    # Maintenance

    async def sweep(self) -> int:
        """Delete revisions that are due, and rows and versions that nobody reads.

        At most VIEW_SWEEP_ROWS of each; returns their number.
        """
        now_ms, most = self._clock.now_ms(), limits.VIEW_SWEEP_ROWS
        await self._rows.end_formers(now_ms)
        await self._rows.end_back_tests()
        versions_max = limits.VIEW_HISTORY_VERSIONS_MAX
        trimmed = await self._rows.trim_history(now_ms, versions_max, most)
        return trimmed + await self._rows.delete_old_rows(most)

    # Parts of a put

    async def _streams(
        self, name: ViewName, query: ViewQuery, *, required: bool
    ) -> Sequence[Stream]:
        """Return the streams that a query follows, the first one first.

        If one does not exist, return none, or raise ValidationFailed if they are required; then those of tables must exist too.
        """
        followed = {query.relation: query.input, **query.joined}
        streams = {f"/from/{relation}/stream": one.stream for relation, one in followed.items()}
        if required:
            tables = query.tables.items()
            streams |= {f"/from/{name}/table": one.stream for name, one in tables if one.stream}
        existing = list[Stream]()
        for pointer, stream in streams.items():
            try:
                existing.append(
                    await self._catalog.fresh_stream(StreamName(stream, name.namespace))
                )
            except StreamNotFound as error:
                if not required:
                    return ()
                raise ValidationFailed.at(pointer, error.detail, "not_found") from None
        return existing[: len(followed)]

    async def _checked_plan(
        self, name: ViewName, spec: ViewSpec, before: View | None
    ) -> ViewPlan | None:
        """Return the plan of a query and check its sinks; None if both are as before."""
        if before is None or before.spec.query != spec.query:
            plan = await self._plan(name, spec.query)
        elif before.spec.into == spec.into:
            return None
        else:
            plan = await self.plan_of(before)
        if spec.into:
            await check_sinks(self._catalog, name, spec, plan)
        return plan

    async def _begin(
        self,
        locked: LockedView,
        view: View,
        revisions: Sequence[ViewRevision],
        plan: ViewPlan | None,
        streams: Sequence[Stream],
    ) -> None:
        """Insert the revision of a new query, or of the same one over a new stream of that name.

        If the active revision has the query, it stays; if the former one has it, that one begins again.
        """
        query = view.spec.query
        for revision in revisions:
            plan = revision.plan if plan is None and revision.query == query else plan
            if streams and _reads(revision, query, streams):
                if revision.state is RevisionState.FORMER:
                    await locked.reactivate(revision, revisions[0].number + 1)
                else:
                    await locked.end(view.view_id, RevisionState.BUILDING)
                return
        if plan is None or not streams:
            raise StorageBusy(_CHANGED)
        if await locked.count_beside(streams[0].name) >= limits.VIEWS_PER_STREAM_MAX:
            most = limits.VIEWS_PER_STREAM_MAX
            raise QuotaReached(f"The stream has {most} views, the maximum.", limit=most)
        await locked.begin(self._revision(view, plan, streams, revisions), streams[0].name)

    def _revision(
        self,
        view: View,
        plan: ViewPlan,
        streams: Sequence[Stream],
        before: Sequence[ViewRevision],
    ) -> ViewRevision:
        """Return a new revision of a view; `before` has the present ones, the newest first."""
        first, *others = streams
        joined = {
            relation: StreamProgress(stream_id=stream.stream_id)
            for relation, stream in zip(view.spec.query.joined, others, strict=True)
        }
        return ViewRevision(
            revision_id=new_log_id(),
            view_id=view.view_id,
            number=before[0].number + 1 if before else 1,
            query=view.spec.query,
            plan=plan,
            stream_id=first.stream_id,
            state=RevisionState.BUILDING if before else RevisionState.ACTIVE,
            progress=ViewProgress(joined=joined),
        )


async def _check_cycle(locked: LockedView, view: View) -> None:
    if any(sink.stream for sink in view.spec.into):
        check_cycle(view, await locked.sinks_of(view.name.namespace))


def _stream_of(view: View) -> StreamName:
    return StreamName(view.spec.query.input.stream, view.name.namespace)


def _reads(revision: ViewRevision, query: ViewQuery, streams: Sequence[Stream]) -> bool:
    """Return whether a revision has this query, and does not read a former stream."""
    pairs = zip(revision.streams, streams, strict=False)  # none if one is deleted
    return revision.query == query and all(
        followed.progress.stream_id == stream.stream_id for followed, stream in pairs
    )


def _not_found(name: ViewName) -> MillstreamError:
    return ViewNotFound(f"View '{name.name}' does not exist.")


def _create(name: ViewName, spec: ViewSpec, now_ms: int) -> View:
    return View(
        view_id=new_log_id(),
        name=name,
        spec=spec,
        version=1,
        created_at_ms=now_ms,
        changed_at_ms=now_ms,
    )


_RULES: DefinitionRules[ViewName, ViewSpec, View] = DefinitionRules(
    not_found=_not_found, create=_create, is_pausable=True
)
