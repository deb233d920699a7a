"""Queries over streams, tables and the rows of views, which run once."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Path, Response

from api.native.audited_route import AuditedRoute
from api.native.dependencies import PrincipalDep, StorageDep, may, require_json
from api.native.examples import AT, LATER, Example, Repeat
from api.rest.schemas.query import QueryConfig, QueryOut, QueryResultOut
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action, Principal
from storage.domain.errors import JobNotFound
from storage.queries.engine import Query
from storage.queries.permissions import authorise_query, may_query

router = APIRouter(prefix="/v1/queries", tags=["queries"], route_class=AuditedRoute)

RUN = Depends(may(Action.QUERY_RUN))
QueryId = Annotated[str, Path(description="As returned when the query was submitted.")]


@router.post(
    "",
    dependencies=[RUN, Depends(require_json)],
    responses={202: {"model": QueryResultOut, "description": "The query has not ended"}},
    response_model=QueryResultOut,
)
async def run_query(storage: StorageDep, principal: PrincipalDep, config: QueryConfig) -> Response:
    """Run a query once, and return its rows.

    It reads the records that its streams have now, and the present rows of its views. The response is 200 with the rows if the query ends within 20 seconds. Otherwise, and if no worker runs, it is 202: read the rows at
    `/v1/queries/{query}`. A query that is not accepted is 422 `sql_refused`, with its line and column, and what to write instead; one that
    fails is 422 `query_failed`. The caller needs `query:run` and `stream:read` on the streams, and `query:run` and `view:read` on the views.
    """
    query = config.to_domain()
    authorise_query(storage.authorizer, principal, query)
    return _answer(await storage.queries.run(principal.namespace, query))


@router.get("/{query}", dependencies=[RUN], response_model=QueryResultOut)
async def get_query(query: QueryId, storage: StorageDep, principal: PrincipalDep) -> Response:
    """Show a query, with its rows once it is done. They are kept for a day."""
    return _answer(await _readable(storage, principal, query), status=200)


@router.delete("/{query}", dependencies=[RUN])
async def cancel_query(query: QueryId, storage: StorageDep, principal: PrincipalDep) -> QueryOut:
    """Cancel a query; one that has ended stays as it is.

    One that runs ends within seconds; until then its `requested_state` is 'cancel'.
    """
    named = await _readable(storage, principal, query)
    return QueryOut.of(await storage.queries.cancel(principal.namespace, named.job.job_id))


async def _readable(storage: Storage, principal: Principal, query_id: str) -> Query:
    """Return a query of the caller's namespace.

    Raises JobNotFound, also without the permission.
    """
    query = await storage.queries.get(principal.namespace, query_id)
    if not may_query(storage.authorizer, principal, query.spec.query):
        raise JobNotFound(f"Query '{query_id}' does not exist.")
    return query


def _answer(query: Query, status: int | None = None) -> Response:
    """Return the query with its rows as they are stored; 202 while it is open."""
    fields: dict[str, Any] = QueryResultOut.of(query).model_dump(mode="json")
    if query.result is not None:
        fields["rows"] = query.result.rows
    return Response(
        msgspec.json.encode(fields),
        status_code=status or (200 if query.job.state.is_over else 202),
        media_type="application/json",
    )


# Examples of the OpenAPI document

QUERY_ID = "7d1f0a52c9e84b36a5d2e4f60718293a"
_QUERY = {
    "id": QUERY_ID,
    "state": "done",
    "requested_state": "none",
    "waiting_for": None,
    "failure": "",
    "created_at": AT,
    "started_at": AT,
    "ended_at": LATER,
}
_DONE = {
    **_QUERY,
    "columns": [{"name": "page", "type": "string"}, {"name": "clicks", "type": "bigint"}],
    "rows": [{"page": "/", "clicks": 41}],
    "truncated": False,
    "as_of": {"c": {"positions": {"0": 120, "1": 96}, "revision": None, "batch": None}},
    "records": {"c": 216},
    "seconds": 1.2,
}

EXAMPLES = {
    "run_query": Example(
        "/v1/queries",
        {
            "sql": "select page, count(*) as clicks from c group by page order by clicks desc limit 10",
            "from": {"c": {"stream": "clicks", "columns": "page string, ms bigint"}},
        },
        answer=_DONE,
        repeat=Repeat.SAFE,
    ),
    "get_query": Example(f"/v1/queries/{QUERY_ID}", answer=_DONE),
    "cancel_query": Example(
        f"/v1/queries/{QUERY_ID}",
        answer={**_QUERY, "state": "running", "requested_state": "cancel", "ended_at": None},
    ),
}
