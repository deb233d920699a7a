from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.view_config import ViewConfig
    from ...models.view_stored import ViewStored


def put_view(
    view: str,
    *,
    body: ViewConfig,
    dry_run: bool | Unset = False,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Call[ViewStored]:
    """Create a view, whose rows a SQL query over a stream keeps up to date, or replace its configuration.

    A worker plans the query; the response has the columns of the rows (`output`) and those that identify a row (`key`), also
    for a dry run. A query that is not accepted is 422 `sql_refused`, with its line and column, and what to write instead.
    Without a worker, or while it starts, the response is 503 `view_plan_pending`, and nothing is stored.

    Another query starts a new revision: the present rows answer until it has caught up, and it then replaces them. Whether the
    view is paused does not change. The caller needs `stream:read` and `view:read` on the streams and views that it reads, and
    `stream:put` or `queue:send` on the sinks. With `If-None-Match: *`, an existing view is not changed: the response is 412, with
    the view (`current`) and the requested fields that differ from it (`changes`).
    """
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "put_view",
        "PUT",
        "/v1/views/{view}".format(
            view=quote(str(view), safe=""),
        ),
        _read,
        params=params,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ViewStored:
    from ...models.view_stored import ViewStored

    if response.status_code == 200:
        response_200 = ViewStored.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = ViewStored.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
