from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...models.settle import Settle
from ...models.settle_results import SettleResults


def settle_messages(
    queue: str,
    *,
    body: Settle,
) -> Call[SettleResults]:
    """Say how deliveries went.

    ack: done. nack: it failed, try again after `delay_seconds`, or as the queue's back-off says. release: not tried, back at once.
    extend: still working, hide it for `visibility_timeout_seconds` from now. reject: never again, to
    the dead letters. Each verdict is answered for itself.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "settle_messages",
        "POST",
        "/v1/queues/{queue}/settle".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> SettleResults:
    if response.status_code == 200:
        response_200 = SettleResults.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
