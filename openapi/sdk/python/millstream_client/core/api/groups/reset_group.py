from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.reset_in import ResetIn
    from ...models.reset_out import ResetOut


def reset_group(
    group: str,
    *,
    body: ResetIn,
) -> Call[ResetOut]:
    """Reset the offsets of a group, even while members are active.

    Reads before the reset are discarded: their commits are rejected as stale.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "reset_group",
        "POST",
        "/v1/groups/{group}/reset".format(
            group=quote(str(group), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ResetOut:
    from ...models.reset_out import ResetOut

    if response.status_code == 200:
        response_200 = ResetOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
