"""Views: query, plan, progress."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, Query, Response

from api.native.dependencies import PrincipalDep, StorageDep, ViewPath, may
from api.native.examples import AT, CREATED, LATER, Example
from api.rest.conditional_requests import IfMatch, etag, expected_version
from api.rest.definition_router import definition_router
from api.rest.noun import Noun, Schemas, Verbs, verbs_of
from api.rest.schemas.view import (
    ViewConfig,
    ViewDetail,
    ViewOut,
    ViewPage,
    ViewStored,
    planned,
)
from api.rest.schemas.view_rows import ViewBatches, ViewBatchOut
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action, Principal
from storage.domain.definitions import Put, with_changes
from storage.domain.views.view import View, ViewSpec
from storage.views.permissions import authorise_reads

SEE, MANAGE = Depends(may(Action.VIEW_LIST)), Depends(may(Action.VIEW_MANAGE))
BatchesMax = Annotated[int, Query(ge=1, le=limits.VIEW_BATCHES_MAX)]


def _authorise(storage: Storage, principal: Principal, _: object, spec: ViewSpec) -> None:
    """Require permission to read what the query reads, and to write to the sinks.

    Raises Forbidden.
    """
    authorise_reads(storage.authorizer, principal, spec.query)
    authorise = storage.authorizer.authorise
    for sink in spec.into:
        action = Action.STREAM_PUT if sink.queue is None else Action.QUEUE_SEND
        authorise(principal, action, f"{principal.namespace}/{sink.target.name}")


async def _plan(storage: Storage, put: Put[View], _: bool) -> Mapping[str, Any]:
    return planned(await storage.views.plan_of(put.definition))


def _verbs(storage: Storage, _: Principal) -> Verbs:
    return verbs_of(storage.views, list=storage.views.list_views)


VIEWS = Noun(
    name="view",
    path=ViewPath,
    schemas=Schemas(ViewOut, ViewConfig, ViewStored, page=ViewPage),
    body_required=True,
    verbs=_verbs,
    authorise=_authorise,
    put_fields=_plan,
    descriptions={
        "put": """Create a view, whose rows a SQL query over a stream keeps up to date, or replace its configuration.

            A worker plans the query; the response has the columns of the rows (`output`) and those that identify a row (`key`), also
            for a dry run. A query that is not accepted is 422 `sql_refused`, with its line and column, and what to write instead.
            Without a worker, or while it starts, the response is 503 `view_plan_pending`, and nothing is stored.

            Another query starts a new revision: the present rows answer until it has caught up, and it then replaces them. Whether the
            view is paused does not change. The caller needs `stream:read` and `view:read` on the streams and views that it reads, and
            `stream:put` or `queue:send` on the sinks. With `If-None-Match: *`, an existing view is not changed: the response is 412, with
            the view (`current`) and the requested fields that differ from it (`changes`).
            """,
        "pause": "Pause a view. Its rows stay, and it continues where it was when it is resumed.",
        "resume": "Resume a paused view, or one that has stopped.",
        "delete": "Delete a view and its rows. The stream is kept.",
        "list": "List views by name.",
    },
)
router = definition_router(VIEWS)


@router.get("/{view}", dependencies=[SEE])
async def get_view(view: ViewPath, storage: StorageDep, response: Response) -> ViewDetail:
    """Show a view, the plan of its query, and what its rows include."""
    status = await storage.views.status(view)
    response.headers["etag"] = etag(status.view.version)
    return ViewDetail.of_status(status)


@router.post("/{view}/rollbacks", dependencies=[MANAGE], status_code=202)
async def roll_back_view(
    *, view: ViewPath, storage: StorageDep, principal: PrincipalDep, if_match: IfMatch = None
) -> ViewDetail:
    """Return to the former revision of a view: put its query again.

    `building` is that revision; within about a second, when both include the same records, it replaces the present one, which is then
    the former one. Sinks get the rows in which the two differ. Only a view with `keep_former_seconds` has a former revision. The caller
    needs `stream:read` and `view:read` on the streams and views that it reads.
    """
    status = await storage.views.status(view)
    if status.former is not None:
        _authorise(
            storage, principal, None, with_changes(status.view.spec, query=status.former.query)
        )
    await storage.views.roll_back(view, if_match=expected_version(if_match))
    return ViewDetail.of_status(await storage.views.status(view))


@router.post("/{view}/rebuilds", dependencies=[MANAGE], status_code=202)
async def rebuild_view(view: ViewPath, storage: StorageDep, if_match: IfMatch = None) -> ViewDetail:
    """Build the rows of a view again from its `start`, beside the present ones.

    When the new revision has caught up, it replaces the present one at the same records, and its `report` compares their rows.
    """
    await storage.views.rebuild(view, if_match=expected_version(if_match))
    return ViewDetail.of_status(await storage.views.status(view))


@router.get("/{view}/batches", dependencies=[SEE])
async def list_view_batches(
    view: ViewPath, storage: StorageDep, limit: BatchesMax = limits.PAGE_ITEMS_DEFAULT
) -> ViewBatches:
    """List the last batches of a view, the newest first."""
    batches = await storage.views.batches(view, limit)
    return ViewBatches(items=[ViewBatchOut.of(batch) for batch in batches])


# Examples of the OpenAPI document

_SQL = "select page, count(*) as clicks from c group by page"
_VIEW: dict[str, Any] = {
    "name": "page-clicks",
    "sql": _SQL,
    "from": {
        "c": {
            "stream": "clicks",
            "columns": "page string, ms bigint",
            "event_time": "",
            "watermark_seconds": 600,
            "idle_seconds": 60,
            "start": "earliest",
            "start_time": None,
            "on_bad": "null",
        }
    },
    "late": "count",
    "sources": "range",
    "into": [
        {
            "stream": None,
            "queue": "alerts",
            "emit": "changes",
            "when": "clicks > 1000",
            "once_per_key": True,
        }
    ],
    "keep_seconds": None,
    "rows_max": 1000000,
    "keep_former_seconds": 86400,
    "history_seconds": 0,
    "paused": False,
    "version": 1,
    "created_at": AT,
    "changed_at": AT,
}
_PLANNED = {
    "output": [{"name": "page", "type": "string"}, {"name": "clicks", "type": "bigint"}],
    "key": ["page"],
}

_REVISION: dict[str, Any] = {
    **_PLANNED,
    "revision": 1,
    "window_seconds": None,
    "session_gap_seconds": None,
    "step_seconds": None,
    "join_seconds": {},
    "aggregates": ["count(1)"],
    "stopped": False,
    "failure": "",
    "progress": {
        "positions": {"0": 120, "1": 96},
        "joined": {},
        "tables": {},
        "watermark": AT,
        "batch": 3,
        "rows": 12,
        "records": 216,
        "late": 0,
        "bad": 0,
        "gaps": 0,
        "changed_at": LATER,
    },
    "report": None,
}
_DETAIL: dict[str, Any] = {
    **_VIEW,
    **_REVISION,
    "state": "running",
    "building": None,
    "former": None,
    "sinks": [{"sink": "queue:alerts", "pending": 0, "sent": 2, "failure": ""}],
}

EXAMPLES = {
    "put_view": Example(
        "/v1/views/page-clicks",
        {
            "sql": _SQL,
            "from": {"c": {"stream": "clicks", "columns": "page string, ms bigint"}},
            "sources": "range",
            "into": [{"queue": "alerts", "when": "clicks > 1000", "once_per_key": True}],
            "keep_former_seconds": 86400,
            "history_seconds": 0,
        },
        201,
        {**_VIEW, **CREATED, **_PLANNED},
        before=(("PUT", "/v1/queues/alerts", {}),),
    ),
    "get_view": Example("/v1/views/page-clicks", answer=_DETAIL),
    "rebuild_view": Example(
        "/v1/views/page-clicks/rebuilds",
        status=202,
        answer={**_DETAIL, "state": "building", "building": {**_REVISION, "revision": 2}},
    ),
    "roll_back_view": Example(
        "/v1/views/page-clicks/rollbacks",
        status=202,
        answer={
            **_DETAIL,
            "state": "building",
            "revision": 2,
            "version": 3,
            "building": {**_REVISION, "revision": 3},
        },
    ),
    "list_views": Example("/v1/views?prefix=page", answer={"items": [_VIEW], "next_cursor": None}),
    "list_view_batches": Example(
        "/v1/views/page-clicks/batches?limit=1",
        answer={
            "items": [
                {
                    "batch": 3,
                    "positions": {"0": 120, "1": 96},
                    "joined": {},
                    "watermark": AT,
                    "records": 36,
                    "late": 0,
                    "bad": 0,
                    "gaps": 0,
                    "rows": 9,
                    "seconds": 0.3,
                    "at": LATER,
                }
            ]
        },
    ),
    "pause_view": Example(
        "/v1/views/page-clicks/pause",
        answer={**_VIEW, "paused": True, "version": 2, "changed_at": LATER},
    ),
    "resume_view": Example(
        "/v1/views/page-clicks/pause", answer={**_VIEW, "version": 3, "changed_at": LATER}
    ),
    "delete_view": Example("/v1/views/page-clicks", status=204),
}
