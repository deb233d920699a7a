from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.send_messages import SendMessages
    from ...models.sent_messages import SentMessages


def send_messages(
    queue: str,
    *,
    body: SendMessages,
    idempotency_key: str | Unset = UNSET,
    millstream_acknowledge: str | Unset = UNSET,
) -> Call[SentMessages]:
    """Send messages to a queue: all of them or none.

    A single message can be sent as an object or as a raw body of any other content type (`curl -d hello`); the response
    is then one object.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    if not isinstance(millstream_acknowledge, Unset):
        headers["Millstream-Acknowledge"] = millstream_acknowledge

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "send_messages",
        "POST",
        "/v1/queues/{queue}/messages".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> SentMessages:
    from ...models.sent_messages import SentMessages

    if response.status_code == 201:
        response_201 = SentMessages.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
