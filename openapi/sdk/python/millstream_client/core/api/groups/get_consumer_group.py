from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.group_detail import GroupDetail


def get_consumer_group(
    group: str,
) -> Call[GroupDetail]:
    """Show a group, its members and their shards."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_consumer_group",
        "GET",
        "/v1/groups/{group}".format(
            group=quote(str(group), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> GroupDetail:
    from ...models.group_detail import GroupDetail

    if response.status_code == 200:
        response_200 = GroupDetail.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
