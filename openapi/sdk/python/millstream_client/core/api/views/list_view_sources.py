from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.view_sources_out import ViewSourcesOut


def list_view_sources(
    view: str,
    *,
    key: list[str] | Unset = UNSET,
    limit: int | Unset = 100,
    cursor: str | Unset = "",
) -> Call[ViewSourcesOut]:
    """List the records that contributed to a row, for a view whose `sources` are `range`.

    `key` has the values of all columns of the key. A worker finds the records by the query; without one, or while it starts, the
    response is 503 `view_sources_pending`. The records of tables, as they are now, decide about joins, and late records that the view
    dropped are listed too. The caller also needs `stream:read` on the stream.
    """

    params: dict[str, Any] = {}

    json_key: list[str] | Unset = UNSET
    if not isinstance(key, Unset):
        json_key = key

    params["key"] = json_key

    params["limit"] = limit

    params["cursor"] = cursor

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_view_sources",
        "GET",
        "/v1/views/{view}/rows/sources".format(
            view=quote(str(view), safe=""),
        ),
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ViewSourcesOut:
    from ...models.view_sources_out import ViewSourcesOut

    if response.status_code == 200:
        response_200 = ViewSourcesOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
