from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.row_order import RowOrder
    from ...models.view_rows_out import ViewRowsOut


def read_view_rows(
    view: str,
    *,
    key: list[str] | Unset = UNSET,
    prefix: str | Unset = "",
    window_from: datetime.datetime | Unset = UNSET,
    window_to: datetime.datetime | Unset = UNSET,
    latest: bool | Unset = False,
    order: RowOrder | Unset = UNSET,
    limit: int | Unset = 100,
    cursor: str | Unset = "",
    after: str | Unset = "",
    wait_seconds: float | Unset = 0.0,
    at: datetime.datetime | Unset = UNSET,
    at_batch: int | Unset = UNSET,
) -> Call[ViewRowsOut]:
    """Read rows of a view, in the order of their keys.

    All rows of a page belong to one batch, which `as_of` describes; the next page may belong to a later one,
    unless the rows are read `at` a time. Numbers that JSON cannot
    hold exactly, such as decimals, are returned as the query computed them.
    """

    params: dict[str, Any] = {}

    json_key: list[str] | Unset = UNSET
    if not isinstance(key, Unset):
        json_key = key

    params["key"] = json_key

    params["prefix"] = prefix

    json_window_from: str | Unset = UNSET
    if not isinstance(window_from, Unset):
        json_window_from = window_from.isoformat()
    params["window_from"] = json_window_from

    json_window_to: str | Unset = UNSET
    if not isinstance(window_to, Unset):
        json_window_to = window_to.isoformat()
    params["window_to"] = json_window_to

    params["latest"] = latest

    json_order: str | Unset = UNSET
    if not isinstance(order, Unset):
        json_order = order.value

    params["order"] = json_order

    params["limit"] = limit

    params["cursor"] = cursor

    params["after"] = after

    params["wait_seconds"] = wait_seconds

    json_at: str | Unset = UNSET
    if not isinstance(at, Unset):
        json_at = at.isoformat()
    params["at"] = json_at

    params["at_batch"] = at_batch

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "read_view_rows",
        "GET",
        "/v1/views/{view}/rows".format(
            view=quote(str(view), safe=""),
        ),
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ViewRowsOut:
    from ...models.view_rows_out import ViewRowsOut

    if response.status_code == 200:
        response_200 = ViewRowsOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
