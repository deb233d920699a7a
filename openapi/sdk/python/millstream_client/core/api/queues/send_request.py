from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.pending_replies import PendingReplies
    from ...models.queue_request import QueueRequest
    from ...models.request_replies import RequestReplies


def send_request(
    queue: str,
    *,
    body: QueueRequest | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
    millstream_acknowledge: str | Unset = UNSET,
) -> Call[RequestReplies | PendingReplies]:
    """Send a message to a queue, and wait for the reply of its receiver.

    The message expires at the deadline, `timeout_seconds` from now. If the wait ends first, the status is 202: ask again at the
    `Location`, from any process. A retry with the same Idempotency-Key sends nothing, and waits for the same replies.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    if not isinstance(millstream_acknowledge, Unset):
        headers["Millstream-Acknowledge"] = millstream_acknowledge

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "send_request",
        "POST",
        "/v1/queues/{queue}/requests".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        headers=headers,
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
