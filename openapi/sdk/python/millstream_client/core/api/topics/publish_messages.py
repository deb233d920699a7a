from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.publish_messages import PublishMessages
    from ...models.published_message_out import PublishedMessageOut
    from ...models.published_messages import PublishedMessages


def publish_messages(
    topic: str,
    *,
    body: PublishMessages,
    idempotency_key: str | Unset = UNSET,
    millstream_acknowledge: str | Unset = UNSET,
) -> Call[PublishedMessages | PublishedMessageOut]:
    """Publish messages to a topic.

    The response is sent when the messages are on disk with the decision which routes take them; their copies follow. On a FIFO topic
    a repeated `dedup_id` adds nothing, and is answered with the first message and `duplicate`. Each message
    has its own result: check `failed`. A single message can be sent as an object or as a raw body of any other content type, with
    its subject in the header `Millstream-Subject`; the response is then one object, or a problem.
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
        "publish_messages",
        "POST",
        "/v1/topics/{topic}/messages".format(
            topic=quote(str(topic), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> PublishedMessages | PublishedMessageOut:
    from ...models.published_message_out import PublishedMessageOut
    from ...models.published_messages import PublishedMessages

    if response.status_code == 200:
        response_200 = PublishedMessages.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = PublishedMessageOut.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
