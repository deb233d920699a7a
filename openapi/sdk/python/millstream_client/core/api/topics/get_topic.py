from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.topic_out import TopicOut


def get_topic(
    topic: str,
    *,
    if_none_match: str | Unset = UNSET,
) -> Call[TopicOut]:
    """Show a topic's configuration."""
    headers: dict[str, Any] = {}
    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_topic",
        "GET",
        "/v1/topics/{topic}".format(
            topic=quote(str(topic), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> TopicOut:
    from ...models.topic_out import TopicOut

    if response.status_code == 200:
        response_200 = TopicOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
