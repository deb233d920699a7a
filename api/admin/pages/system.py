"""System pages: processes, the two stores, Spark jobs, settings, and their problems."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from api.admin.error_pages import PageRoute
from api.admin.lists import PAGE_ROWS, first_page
from api.admin.rendering import Context, Tab
from api.config.sources import effective_settings
from api.native.cursors import decode_cursor, encode_cursor
from api.native.dependencies import may
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action
from storage.domain.errors import Forbidden, MillstreamError
from storage.domain.jobs import JobState
from storage.operations.diagnostics import Diagnostic
from storage.operations.job_waits import wait_reasons

router = APIRouter(prefix="/ui/system", include_in_schema=False, route_class=PageRoute)

SEE = Depends(may(Action.METRICS_READ))
JOBS = Depends(may(Action.JOB_LIST))
Cursor = Annotated[str, Query()]

_PINGS = 10  # it is looked at again and again
_TABS = [
    Tab("health", "Health", "/ui/system"),
    Tab("jobs", "Jobs", "/ui/system/jobs"),
    Tab("settings", "Settings", "/ui/system/settings"),
]


@router.get("", dependencies=[SEE])
async def show_health(context: Context) -> Response:
    """Show processes and stores, and their health."""
    storage = context.storage
    processes, findings, hot, slowest, postgres = await asyncio.gather(
        storage.presence.processes(),
        _findings(storage),
        storage.health.hot_figures(),
        storage.health.slow_commands(),
        storage.health.postgres_figures(),
    )
    return context.render(
        "system/health.html",
        live=True,
        processes=processes,
        findings=findings,
        hot=hot,
        slowest=slowest,
        postgres=postgres,
        tabs=_TABS,
        here="health",
    )


async def _findings(storage: Storage) -> list[Diagnostic]:
    """Return the findings of `millstream doctor` about the stores."""
    try:
        return await storage.health.diagnose(_PINGS)
    except MillstreamError as error:
        return [Diagnostic("stores", ok=False, detail=error.detail)]


@router.get("/jobs", dependencies=[JOBS])
async def list_jobs(
    context: Context, state: Annotated[JobState | None, Query()] = None, cursor: Cursor = ""
) -> Response:
    """List the jobs of the Spark workers: running, finished and queued."""
    about = ("ui", "jobs", context.namespace, state or "")
    jobs = await context.storage.jobs.list(
        namespace=context.namespace,
        state=state,
        after=decode_cursor(cursor, about, tuple[int, str]) if cursor else None,
        limit=PAGE_ROWS + 1,
    )
    rows, last = first_page(jobs, lambda job: (job.created_at_ms, job.job_id))
    waits = await wait_reasons(context.storage.presence, *rows)
    return context.render(
        "system/jobs.html",
        live=True,
        rows=rows,
        waits=waits,
        state=state,
        states=list(JobState),
        cursor=cursor,
        more=None if last is None else encode_cursor(about, last),
        tabs=_TABS,
        here="jobs",
    )


@router.get("/settings", dependencies=[SEE])
async def show_settings(context: Context) -> Response:
    """Show the settings of this process and the source of each."""
    if not context.principal.all_namespaces:
        raise Forbidden("Only administrators of all namespaces can view the deployment's settings.")
    return context.render(
        "system/settings.html",
        settings=effective_settings(context.request.app.state.settings),
        tabs=_TABS,
        here="settings",
    )
