from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.topic_stats import TopicStats


def get_topic_stats(
    topic: str,
) -> Call[TopicStats]:
    """Count the messages of a topic, and those that are not yet examined for its routes."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_topic_stats",
        "GET",
        "/v1/topics/{topic}/stats".format(
            topic=quote(str(topic), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> TopicStats:
    from ...models.topic_stats import TopicStats

    if response.status_code == 200:
        response_200 = TopicStats.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
