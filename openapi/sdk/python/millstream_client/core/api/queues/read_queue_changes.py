from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.queue_changes import QueueChanges


def read_queue_changes(
    queue: str,
    *,
    position: str | Unset = UNSET,
    next_offset: int | Unset = 0,
    partition: int | Unset = 0,
    wait_seconds: float | Unset = 0.0,
) -> Call[QueueChanges]:
    """Read the changes of a queue's messages, to keep a copy of it in another deployment.

    Mirrors copy queues with this, partition by partition. Times are milliseconds since 1970. With `wait_seconds`, the call waits for a change, or a message
    from `next_offset` on. Changes are recorded for a day after the last call.
    """

    params: dict[str, Any] = {}

    params["position"] = position

    params["next_offset"] = next_offset

    params["partition"] = partition

    params["wait_seconds"] = wait_seconds

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "read_queue_changes",
        "GET",
        "/v1/queues/{queue}/changes".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> QueueChanges:
    from ...models.queue_changes import QueueChanges

    if response.status_code == 200:
        response_200 = QueueChanges.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
