from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset


def leave_group(
    group: str,
    member: str,
    *,
    for_a_while: bool | Unset = False,
    generation: int | Unset = UNSET,
) -> Call[None]:
    """Leave a group. The member's shards are reassigned immediately."""

    params: dict[str, Any] = {}

    params["for_a_while"] = for_a_while

    params["generation"] = generation

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "leave_group",
        "DELETE",
        "/v1/groups/{group}/members/{member}".format(
            group=quote(str(group), safe=""),
            member=quote(str(member), safe=""),
        ),
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> None:
    if response.status_code == 204:
        return None
    raise AssertionError(f"{response.status_code} was not read")
