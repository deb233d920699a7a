from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...models.group_config import GroupConfig
from ...models.group_out import GroupOut
from ...types import UNSET, Unset


def put_consumer_group(
    group: str,
    *,
    body: GroupConfig,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Call[GroupOut]:
    """Create a group that reads a stream, or change its timeouts."""
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

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
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> GroupOut:
    if response.status_code == 200:
        response_200 = GroupOut.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = GroupOut.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
