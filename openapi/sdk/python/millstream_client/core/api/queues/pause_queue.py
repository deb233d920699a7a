from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.queue_out import QueueOut


def pause_queue(
    queue: str,
) -> Call[QueueOut]:
    """Pause delivery: the queue accepts messages and delivers none until it is resumed."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "pause_queue",
        "PUT",
        "/v1/queues/{queue}/pause".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> QueueOut:
    from ...models.queue_out import QueueOut

    if response.status_code == 200:
        response_200 = QueueOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
