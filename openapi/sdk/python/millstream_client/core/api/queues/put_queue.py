from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...models.queue_config import QueueConfig
from ...models.queue_out import QueueOut
from ...types import UNSET, Unset


def put_queue(
    queue: str,
    *,
    body: QueueConfig | Unset = UNSET,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Call[QueueOut]:
    """Create a queue, or replace its configuration."""
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "put_queue",
        "PUT",
        "/v1/queues/{queue}".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> QueueOut:
    if response.status_code == 200:
        response_200 = QueueOut.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = QueueOut.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
