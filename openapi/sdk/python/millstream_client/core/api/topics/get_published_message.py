from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.topic_message_out import TopicMessageOut


def get_published_message(
    topic: str,
    message: str,
) -> Call[TopicMessageOut]:
    """Show a message that was published to a topic."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_published_message",
        "GET",
        "/v1/topics/{topic}/messages/{message}".format(
            topic=quote(str(topic), safe=""),
            message=quote(str(message), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> TopicMessageOut:
    from ...models.topic_message_out import TopicMessageOut

    if response.status_code == 200:
        response_200 = TopicMessageOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
