from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.route_out import RouteOut


def resume_route(
    topic: str,
    route: str,
) -> Call[RouteOut]:
    """Resume a paused route, and the webhook of a URL. It continues with the messages that waited."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "resume_route",
        "DELETE",
        "/v1/topics/{topic}/routes/{route}/pause".format(
            topic=quote(str(topic), safe=""),
            route=quote(str(route), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> RouteOut:
    from ...models.route_out import RouteOut

    if response.status_code == 200:
        response_200 = RouteOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
