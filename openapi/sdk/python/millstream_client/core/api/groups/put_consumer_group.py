from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.group_config import GroupConfig
    from ...models.group_stored import GroupStored


def put_consumer_group(
    group: str,
    *,
    body: GroupConfig,
    dry_run: bool | Unset = False,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Call[GroupStored]:
    """Create a group that reads a stream, or change its timeouts.

    A paused group stays paused. With `If-None-Match: *`, an existing group is not changed: the response is 412,
    with the group (`current`) and the requested fields that differ from it (`changes`).
    """
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "put_consumer_group",
        "PUT",
        "/v1/groups/{group}".format(
            group=quote(str(group), safe=""),
        ),
        _read,
        params=params,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> GroupStored:
    from ...models.group_stored import GroupStored

    if response.status_code == 200:
        response_200 = GroupStored.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = GroupStored.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
