from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.topic_config import TopicConfig
    from ...models.topic_stored import TopicStored


def put_topic(
    topic: str,
    *,
    body: TopicConfig | Unset = UNSET,
    dry_run: bool | Unset = False,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Call[TopicStored]:
    """Create a topic, or replace its configuration.

    A topic is a log that messages are published to under a subject. Its routes copy each message that they match to a
    queue or a stream, once. On a topic of the type `fifo` a repeated deduplication id adds nothing. The log is the stream `topic:<name>`, which readers, groups and replays can name. With
    `If-None-Match: *`, an existing topic is not changed: the response is 412, with the topic (`current`) and the requested
    fields that differ from it (`changes`).
    """
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "put_topic",
        "PUT",
        "/v1/topics/{topic}".format(
            topic=quote(str(topic), safe=""),
        ),
        _read,
        params=params,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> TopicStored:
    from ...models.topic_stored import TopicStored

    if response.status_code == 200:
        response_200 = TopicStored.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = TopicStored.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
