from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.group_out import GroupOut


def resume_consumer_group(
    group: str,
) -> Call[GroupOut]:
    """Resume a group."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "resume_consumer_group",
        "DELETE",
        "/v1/groups/{group}/pause".format(
            group=quote(str(group), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> GroupOut:
    from ...models.group_out import GroupOut

    if response.status_code == 200:
        response_200 = GroupOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
