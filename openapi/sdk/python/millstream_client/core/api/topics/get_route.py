from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.route_out import RouteOut


def get_route(
    topic: str,
    route: str,
    *,
    if_none_match: str | Unset = UNSET,
) -> Call[RouteOut]:
    """Show a route's configuration."""
    headers: dict[str, Any] = {}
    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_route",
        "GET",
        "/v1/topics/{topic}/routes/{route}".format(
            topic=quote(str(topic), safe=""),
            route=quote(str(route), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> RouteOut:
    from ...models.route_out import RouteOut

    if response.status_code == 200:
        response_200 = RouteOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
