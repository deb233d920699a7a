from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.route_page import RoutePage


def list_routes(
    topic: str,
    *,
    prefix: str | Unset = "",
    limit: int | Unset = 100,
    cursor: str | Unset = "",
) -> Call[RoutePage]:
    """List the routes of a topic by name."""

    params: dict[str, Any] = {}

    params["prefix"] = prefix

    params["limit"] = limit

    params["cursor"] = cursor

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_routes",
        "GET",
        "/v1/topics/{topic}/routes".format(
            topic=quote(str(topic), safe=""),
        ),
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> RoutePage:
    from ...models.route_page import RoutePage

    if response.status_code == 200:
        response_200 = RoutePage.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
