from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.view_page import ViewPage


def list_views(
    *,
    prefix: str | Unset = "",
    limit: int | Unset = 100,
    cursor: str | Unset = "",
) -> Call[ViewPage]:
    """List views by name."""

    params: dict[str, Any] = {}

    params["prefix"] = prefix

    params["limit"] = limit

    params["cursor"] = cursor

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_views",
        "GET",
        "/v1/views",
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ViewPage:
    from ...models.view_page import ViewPage

    if response.status_code == 200:
        response_200 = ViewPage.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
