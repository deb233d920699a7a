from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.pending_replies import PendingReplies
    from ...models.request_replies import RequestReplies
    from ...models.topic_request import TopicRequest


def publish_request(
    topic: str,
    *,
    body: TopicRequest | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
    millstream_acknowledge: str | Unset = UNSET,
) -> Call[RequestReplies | PendingReplies]:
    """Publish a message to a topic, and gather the replies of its receivers.

    It waits until there are `replies_max` replies. If the wait ends first, the status is 202, with the replies so far: ask again
    at the `Location`. A retry with the same Idempotency-Key publishes nothing, and waits for the same replies.
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
        "publish_request",
        "POST",
        "/v1/topics/{topic}/requests".format(
            topic=quote(str(topic), safe=""),
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
