from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.key_page import KeyPage


def list_keys(
    *,
    name: str | Unset = UNSET,
    limit: int | Unset = 100,
    cursor: str | Unset = "",
) -> Call[KeyPage]:
    """List credentials by name, including those that ended within the last 90 days."""

    params: dict[str, Any] = {}

    params["name"] = name

    params["limit"] = limit

    params["cursor"] = cursor

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_keys",
        "GET",
        "/v1/keys",
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> KeyPage:
    from ...models.key_page import KeyPage

    if response.status_code == 200:
        response_200 = KeyPage.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
