from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.group_lag import GroupLag


def get_group_lag(
    group: str,
) -> Call[GroupLag]:
    """Show the lag of a group in records and time, and when unread records expire."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_group_lag",
        "GET",
        "/v1/groups/{group}/lag".format(
            group=quote(str(group), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> GroupLag:
    from ...models.group_lag import GroupLag

    if response.status_code == 200:
        response_200 = GroupLag.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
