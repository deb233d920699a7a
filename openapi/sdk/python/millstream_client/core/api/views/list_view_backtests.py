from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.view_back_test_list import ViewBackTestList


def list_view_backtests(
    view: str,
    *,
    limit: int | Unset = 100,
) -> Call[ViewBackTestList]:
    """List the last back-tests of a view, the newest first, with their results."""

    params: dict[str, Any] = {}

    params["limit"] = limit

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_view_backtests",
        "GET",
        "/v1/views/{view}/backtests".format(
            view=quote(str(view), safe=""),
        ),
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ViewBackTestList:
    from ...models.view_back_test_list import ViewBackTestList

    if response.status_code == 200:
        response_200 = ViewBackTestList.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
