from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.query_config import QueryConfig
    from ...models.query_result_out import QueryResultOut


def run_query(
    *,
    body: QueryConfig,
) -> Call[QueryResultOut]:
    """Run a query once, and return its rows.

    It reads the records that its streams have now, and the present rows of its views. The response is 200 with the rows if the query ends within 20 seconds. Otherwise, and if no worker runs, it is 202: read the rows at
    `/v1/queries/{query}`. A query that is not accepted is 422 `sql_refused`, with its line and column, and what to write instead; one that
    fails is 422 `query_failed`. The caller needs `query:run` and `stream:read` on the streams, and `query:run` and `view:read` on the views.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "run_query",
        "POST",
        "/v1/queries",
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> QueryResultOut:
    from ...models.query_result_out import QueryResultOut

    if response.status_code == 200:
        response_200 = QueryResultOut.from_dict(response.json())

        return response_200

    if response.status_code == 202:
        response_202 = QueryResultOut.from_dict(response.json())

        return response_202

    raise AssertionError(f"{response.status_code} was not read")
