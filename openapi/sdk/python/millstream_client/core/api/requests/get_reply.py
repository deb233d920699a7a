from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.pending_replies import PendingReplies
    from ...models.request_replies import RequestReplies


def get_reply(
    request: str,
    *,
    wait_seconds: float | Unset = 0.0,
) -> Call[RequestReplies | PendingReplies]:
    """Wait for the replies to a request, until there are as many as it accepts.

    Every caller of the namespace that has the request's token may do so, as often as it likes, until the replies expire. The
    status is 202 if the wait ended first.
    """

    params: dict[str, Any] = {}

    params["wait_seconds"] = wait_seconds

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_reply",
        "GET",
        "/v1/requests/{request}/reply".format(
            request=quote(str(request), safe=""),
        ),
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> RequestReplies | PendingReplies:
    from ...models.pending_replies import PendingReplies
    from ...models.request_replies import RequestReplies

    if response.status_code == 200:
        response_200 = RequestReplies.from_dict(response.json())

        return response_200

    if response.status_code == 202:
        response_202 = PendingReplies.from_dict(response.json())

        return response_202

    raise AssertionError(f"{response.status_code} was not read")
