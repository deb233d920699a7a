from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.query_out import QueryOut


def cancel_query(
    query: str,
) -> Call[QueryOut]:
    """Cancel a query; one that has ended stays as it is.

    One that runs ends within seconds; until then its `requested_state` is 'cancel'.
    """

    _kwargs: dict[str, Any] = {}

    return Call(
        "cancel_query",
        "DELETE",
        "/v1/queries/{query}".format(
            query=quote(str(query), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> QueryOut:
    from ...models.query_out import QueryOut

    if response.status_code == 200:
        response_200 = QueryOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
