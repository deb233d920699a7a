from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.join_in import JoinIn
    from ...models.membership_out import MembershipOut


def join_group(
    group: str,
    *,
    body: JoinIn | Unset = UNSET,
) -> Call[MembershipOut]:
    """Join a group. Rejoining with the same name fences the previous instance.

    Members then send heartbeats, read their shards and commit. `GET …/records` does all of that except the commit.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "join_group",
        "POST",
        "/v1/groups/{group}/members".format(
            group=quote(str(group), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> MembershipOut:
    from ...models.membership_out import MembershipOut

    if response.status_code == 200:
        response_200 = MembershipOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
