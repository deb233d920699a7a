from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.queue_consumer_list import QueueConsumerList


def list_queue_consumers(
    queue: str,
) -> Call[QueueConsumerList]:
    """List the consumers of a queue, by any protocol.

    Those that received in the last five minutes, and those with messages in flight; at most some 500. Other processes report
    their consumers every ten seconds.
    """

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_queue_consumers",
        "GET",
        "/v1/queues/{queue}/consumers".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> QueueConsumerList:
    from ...models.queue_consumer_list import QueueConsumerList

    if response.status_code == 200:
        response_200 = QueueConsumerList.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
