"""Back-tests of views."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response

from api.native.audited_route import AuditedRoute
from api.native.dependencies import PrincipalDep, StorageDep, ViewPath, may
from api.native.examples import AT, LATER, Example, Repeat
from api.rest.definition_router import JSON_ONLY
from api.rest.schemas.back_test import ViewBackTestList, ViewBackTestOut
from api.rest.schemas.view import ViewConfig
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.operations.job_waits import wait_reasons
from storage.views.back_tests import ViewBackTest
from storage.views.permissions import authorise_reads

router = APIRouter(prefix="/v1/views", tags=["views"], route_class=AuditedRoute)

READ = Depends(may(Action.VIEW_READ))
BackTestsMax = Annotated[int, Query(ge=1, le=limits.PAGE_ITEMS_DEFAULT)]


@router.post(
    "/{view}/backtests",
    dependencies=[Depends(may(Action.JOB_MANAGE)), JSON_ONLY],
    status_code=202,
)
async def start_view_backtest(
    view: ViewPath,
    request: ViewConfig,
    storage: StorageDep,
    principal: PrincipalDep,
    response: Response,
) -> ViewBackTestOut:
    """Start a job that evaluates a configuration over the records that a view includes.

    The body is that of `PUT /v1/views/{view}`, of the same stream. Nothing is stored in the view and nothing is sent: the result says in
    which rows the configuration differs from the view, and which messages its sinks would have got. The sinks need not exist.
    A view has one such job at a time: the same back-test again returns the open job, another one is refused. It also needs the
    permission `view:read`, and `stream:read` and `view:read` on the streams and views that the configuration reads. Jobs are cancelled
    and retried with `/v1/jobs`.
    """
    spec = request.to_domain()
    authorizer = storage.authorizer
    authorizer.authorise(principal, Action.VIEW_READ, f"{view.namespace}/{view.name}")
    authorise_reads(authorizer, principal, spec.query)
    submitted = await storage.view_back_tests.submit(view, spec)
    response.headers["location"] = f"/v1/views/{view.name}/backtests/{submitted.job.job_id}"
    [answer] = await _answers(storage, [submitted])
    return answer


@router.get("/{view}/backtests", dependencies=[READ])
async def list_view_backtests(
    view: ViewPath, storage: StorageDep, limit: BackTestsMax = limits.PAGE_ITEMS_DEFAULT
) -> ViewBackTestList:
    """List the last back-tests of a view, the newest first, with their results."""
    await storage.views.get(view)
    recent = await storage.view_back_tests.recent(view, limit)
    return ViewBackTestList(items=await _answers(storage, recent))


@router.get("/{view}/backtests/{backtest}", dependencies=[READ])
async def get_view_backtest(
    view: ViewPath,
    backtest: Annotated[str, Path(description="As returned when it was started.")],
    storage: StorageDep,
) -> ViewBackTestOut:
    """Show a back-test of a view, and its result once it is done."""
    [answer] = await _answers(storage, [await storage.view_back_tests.get(view, backtest)])
    return answer


async def _answers(storage: Storage, back_tests: Sequence[ViewBackTest]) -> list[ViewBackTestOut]:
    waits = await wait_reasons(storage.presence, *(one.job for one in back_tests))
    return [ViewBackTestOut.of(one, waits.get(one.job.job_id)) for one in back_tests]


# Examples of the OpenAPI document

VIEW_BACK_TEST_ID = "3b1f0a9c5d7e42868f90a1b2c3d4e5f6"
_SQL = "select page, count(*) as clicks from c group by page"
_CONFIG = {
    "sql": _SQL,
    "from": {"c": {"stream": "clicks", "columns": "page string, ms bigint"}},
    "into": [{"queue": "alerts", "when": "clicks > 500", "once_per_key": True}],
}
_STARTED = {
    "id": VIEW_BACK_TEST_ID,
    "view": "page-clicks",
    "state": "queued",
    "requested_state": "none",
    "waiting_for": "worker",
    "attempt": 0,
    "failure": "",
    "created_at": AT,
    "started_at": None,
    "ended_at": None,
    "sql": _SQL,
    "records": 0,
    "records_total": None,
    "result": None,
}
_DONE = {
    **_STARTED,
    "state": "done",
    "waiting_for": None,
    "attempt": 1,
    "started_at": AT,
    "ended_at": LATER,
    "records": 216,
    "records_total": 216,
    "result": {
        "revision": 1,
        "exact": True,
        "records": 216,
        "view_records": 216,
        "added": 0,
        "removed": 0,
        "changed": 0,
        "samples": [],
        "sinks": [
            {
                "sink": "queue:alerts",
                "messages": 1,
                "samples": [
                    {
                        "change": "insert",
                        "key": "/",
                        "row": {"page": "/", "clicks": 501},
                        "before": {"page": "/", "clicks": 412},
                    }
                ],
            }
        ],
    },
}

EXAMPLES = {
    "start_view_backtest": Example(
        "/v1/views/page-clicks/backtests", _CONFIG, 202, _STARTED, repeat=Repeat.SAFE
    ),
    "list_view_backtests": Example(
        "/v1/views/page-clicks/backtests?limit=1", answer={"items": [_DONE]}
    ),
    "get_view_backtest": Example(
        f"/v1/views/page-clicks/backtests/{VIEW_BACK_TEST_ID}", answer=_DONE
    ),
}
