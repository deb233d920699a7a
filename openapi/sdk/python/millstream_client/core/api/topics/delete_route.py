from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset


def delete_route(
    topic: str,
    route: str,
    *,
    if_match: str | Unset = UNSET,
) -> Call[None]:
    """Delete a route at once. Messages that it has taken and not delivered are dropped.

    The queue and the webhook of a URL are deleted with it.
    """
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    _kwargs: dict[str, Any] = {}

    return Call(
        "delete_route",
        "DELETE",
        "/v1/topics/{topic}/routes/{route}".format(
            topic=quote(str(topic), safe=""),
            route=quote(str(route), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> None:
    if response.status_code == 204:
        return None
    raise AssertionError(f"{response.status_code} was not read")
