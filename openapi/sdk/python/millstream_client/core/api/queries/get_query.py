from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.query_result_out import QueryResultOut


def get_query(
    query: str,
) -> Call[QueryResultOut]:
    """Show a query, with its rows once it is done. They are kept for a day."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_query",
        "GET",
        "/v1/queries/{query}".format(
            query=quote(str(query), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> QueryResultOut:
    from ...models.query_result_out import QueryResultOut

    if response.status_code == 200:
        response_200 = QueryResultOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
