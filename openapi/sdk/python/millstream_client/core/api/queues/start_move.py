from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.move_config import MoveConfig
    from ...models.move_out import MoveOut


def start_move(
    queue: str,
    *,
    body: MoveConfig | Unset = UNSET,
) -> Call[MoveOut]:
    """Start moving the ready messages to `destination`, or dead letters back to their sources.

    Without a destination the queue must be a dead-letter queue. Message groups keep their order. Messages that are delayed
    or in flight are moved when they are ready: stop senders and consumers first, and start the move again until it finds none.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "start_move",
        "POST",
        "/v1/queues/{queue}/moves".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> MoveOut:
    from ...models.move_out import MoveOut

    if response.status_code == 202:
        response_202 = MoveOut.from_dict(response.json())

        return response_202

    raise AssertionError(f"{response.status_code} was not read")
