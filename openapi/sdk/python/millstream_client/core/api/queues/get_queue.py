from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.queue_out import QueueOut


def get_queue(
    queue: str,
    *,
    if_none_match: str | Unset = UNSET,
) -> Call[QueueOut]:
    """Show a queue's configuration."""
    headers: dict[str, Any] = {}
    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_queue",
        "GET",
        "/v1/queues/{queue}".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> QueueOut:
    from ...models.queue_out import QueueOut

    if response.status_code == 200:
        response_200 = QueueOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
