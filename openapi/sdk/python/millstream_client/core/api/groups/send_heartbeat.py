from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.heartbeat import Heartbeat
    from ...models.heartbeat_in import HeartbeatIn


def send_heartbeat(
    group: str,
    member: str,
    *,
    body: HeartbeatIn | Unset = UNSET,
) -> Call[Heartbeat]:
    """Send a heartbeat of a member and return its assignment.

    A member stops reading its `revoked` shards, commits, and omits them from `owned` in the next heartbeat; then they are
    reassigned. A member that sent no heartbeat for too long is unknown and must join again.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "send_heartbeat",
        "POST",
        "/v1/groups/{group}/members/{member}/heartbeat".format(
            group=quote(str(group), safe=""),
            member=quote(str(member), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> Heartbeat:
    from ...models.heartbeat import Heartbeat

    if response.status_code == 200:
        response_200 = Heartbeat.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
