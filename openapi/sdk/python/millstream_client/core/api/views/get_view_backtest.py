from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.view_back_test_out import ViewBackTestOut


def get_view_backtest(
    view: str,
    backtest: str,
) -> Call[ViewBackTestOut]:
    """Show a back-test of a view, and its result once it is done."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_view_backtest",
        "GET",
        "/v1/views/{view}/backtests/{backtest}".format(
            view=quote(str(view), safe=""),
            backtest=quote(str(backtest), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ViewBackTestOut:
    from ...models.view_back_test_out import ViewBackTestOut

    if response.status_code == 200:
        response_200 = ViewBackTestOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
