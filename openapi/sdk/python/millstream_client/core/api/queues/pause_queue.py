from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call
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
    if response.status_code == 200:
        response_200 = QueueOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
