from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.view_back_test_out import ViewBackTestOut
    from ...models.view_config import ViewConfig


def start_view_backtest(
    view: str,
    *,
    body: ViewConfig,
) -> Call[ViewBackTestOut]:
    """Start a job that evaluates a configuration over the records that a view includes.

    The body is that of `PUT /v1/views/{view}`, of the same stream. Nothing is stored in the view and nothing is sent: the result says in
    which rows the configuration differs from the view, and which messages its sinks would have got. The sinks need not exist.
    A view has one such job at a time: the same back-test again returns the open job, another one is refused. It also needs the
    permission `view:read`, and `stream:read` and `view:read` on the streams and views that the configuration reads. Jobs are cancelled
    and retried with `/v1/jobs`.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "start_view_backtest",
        "POST",
        "/v1/views/{view}/backtests".format(
            view=quote(str(view), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ViewBackTestOut:
    from ...models.view_back_test_out import ViewBackTestOut

    if response.status_code == 202:
        response_202 = ViewBackTestOut.from_dict(response.json())

        return response_202

    raise AssertionError(f"{response.status_code} was not read")
