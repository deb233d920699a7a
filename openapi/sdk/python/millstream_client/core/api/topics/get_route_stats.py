from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.route_stats import RouteStats


def get_route_stats(
    topic: str,
    route: str,
) -> Call[RouteStats]:
    """Show what a route has delivered, dead-lettered and dropped, and how far it is behind."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_route_stats",
        "GET",
        "/v1/topics/{topic}/routes/{route}/stats".format(
            topic=quote(str(topic), safe=""),
            route=quote(str(route), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> RouteStats:
    from ...models.route_stats import RouteStats

    if response.status_code == 200:
        response_200 = RouteStats.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
