from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.group_out import GroupOut


def pause_consumer_group(
    group: str,
) -> Call[GroupOut]:
    """Pause a group: its members receive no records until it is resumed.

    Members notice within one heartbeat, at most 5 seconds. They keep their shards, and may commit what they have received.
    """

    _kwargs: dict[str, Any] = {}

    return Call(
        "pause_consumer_group",
        "PUT",
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
