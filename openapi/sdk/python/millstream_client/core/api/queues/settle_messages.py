from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.settle import Settle
    from ...models.settle_results import SettleResults


def settle_messages(
    queue: str,
    *,
    body: Settle,
) -> Call[SettleResults]:
    """Settle deliveries.

    ack: processed. nack: failed; redelivered after `delay_seconds` or the queue's back-off. release: not attempted;
    redelivered immediately. extend: still processing; hidden for `visibility_timeout_seconds` from now. reject: failed
    permanently; dead-lettered. Each settlement has its own result. An ack can have the `reply` to a request, which is sent first.
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
    from ...models.settle_results import SettleResults

    if response.status_code == 200:
        response_200 = SettleResults.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
