from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.queue_fence_config import QueueFenceConfig
    from ...models.queue_fence_out import QueueFenceOut


def put_queue_fence(
    queue: str,
    *,
    body: QueueFenceConfig,
) -> Call[QueueFenceOut]:
    """Fence a queue: it accepts no messages and delivers none.

    Settlements are accepted. A mirror fences its copies of queues, and a promotion the queues of the other deployment, with the token `mirror`. An empty token
    removes the fence. With `expected`, only if that is the current token.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "put_queue_fence",
        "PUT",
        "/v1/queues/{queue}/fence".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> QueueFenceOut:
    from ...models.queue_fence_out import QueueFenceOut

    if response.status_code == 200:
        response_200 = QueueFenceOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
