from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.group_page import GroupPage


def list_consumer_groups(
    *,
    prefix: str | Unset = "",
    limit: int | Unset = 100,
    cursor: str | Unset = "",
    measured: bool | Unset = False,
) -> Call[GroupPage]:
    """List groups by name."""

    params: dict[str, Any] = {}

    params["prefix"] = prefix

    params["limit"] = limit

    params["cursor"] = cursor

    params["measured"] = measured

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_consumer_groups",
        "GET",
        "/v1/groups",
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> GroupPage:
    from ...models.group_page import GroupPage

    if response.status_code == 200:
        response_200 = GroupPage.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
