from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.route_out import RouteOut
    from ...models.route_patch import RoutePatch


def change_route(
    topic: str,
    route: str,
    *,
    body: RoutePatch,
    if_match: str | Unset = UNSET,
) -> Call[RouteOut]:
    """Change fields of a route's configuration."""
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "change_route",
        "PATCH",
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
