from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.move_change import MoveChange
    from ...models.move_out import MoveOut


def change_move(
    queue: str,
    move: str,
    *,
    body: MoveChange,
) -> Call[MoveOut]:
    """Cancel a move: `{"state": "cancelled"}`."""
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "change_move",
        "PATCH",
        "/v1/queues/{queue}/moves/{move}".format(
            queue=quote(str(queue), safe=""),
            move=quote(str(move), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> MoveOut:
    from ...models.move_out import MoveOut

    if response.status_code == 200:
        response_200 = MoveOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
