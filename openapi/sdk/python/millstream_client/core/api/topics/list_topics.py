from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.topic_page import TopicPage


def list_topics(
    *,
    prefix: str | Unset = "",
    limit: int | Unset = 100,
    cursor: str | Unset = "",
) -> Call[TopicPage]:
    """List topics by name, and behind them streams that have routes, as `stream:<name>`."""

    params: dict[str, Any] = {}

    params["prefix"] = prefix

    params["limit"] = limit

    params["cursor"] = cursor

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_topics",
        "GET",
        "/v1/topics",
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> TopicPage:
    from ...models.topic_page import TopicPage

    if response.status_code == 200:
        response_200 = TopicPage.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
