from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.queue_stats_out import QueueStatsOut


def get_queue_stats(
    queue: str,
) -> Call[QueueStatsOut]:
    """Return exact message counts of a queue by state."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_queue_stats",
        "GET",
        "/v1/queues/{queue}/stats".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> QueueStatsOut:
    from ...models.queue_stats_out import QueueStatsOut

    if response.status_code == 200:
        response_200 = QueueStatsOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
