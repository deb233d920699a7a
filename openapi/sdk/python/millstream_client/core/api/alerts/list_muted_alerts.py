from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.mute_page import MutePage


def list_muted_alerts(
    *,
    limit: int | Unset = 100,
    cursor: str | Unset = "",
) -> Call[MutePage]:
    """List the muted alerts by kind and object."""

    params: dict[str, Any] = {}

    params["limit"] = limit

    params["cursor"] = cursor

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_muted_alerts",
        "GET",
        "/v1/alerts/mutes",
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> MutePage:
    from ...models.mute_page import MutePage

    if response.status_code == 200:
        response_200 = MutePage.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
