from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.move_out import MoveOut
    from ...models.redrive_config import RedriveConfig
    from ...models.redriven import Redriven


def redrive_queue(
    queue: str,
    *,
    body: RedriveConfig | Unset = UNSET,
) -> Call[Redriven | MoveOut]:
    """Redrive dead letters of a queue, oldest first: all of them, or those that match.

    With `per_second`, this starts a move, whose progress is at `location`.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "redrive_queue",
        "POST",
        "/v1/queues/{queue}/redrives".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> Redriven | MoveOut:
    from ...models.move_out import MoveOut
    from ...models.redriven import Redriven

    if response.status_code == 200:
        response_200 = Redriven.from_dict(response.json())

        return response_200

    if response.status_code == 202:
        response_202 = MoveOut.from_dict(response.json())

        return response_202

    raise AssertionError(f"{response.status_code} was not read")
