from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.receive import Receive
    from ...models.received_messages import ReceivedMessages


def receive_messages(
    queue: str,
    *,
    body: Receive | Unset = UNSET,
) -> Call[ReceivedMessages]:
    """Receive messages.

    Each message is hidden from other consumers until its visibility timeout expires: settle it before then. With
    `wait_seconds`, the call waits for the first message; an empty list means that none arrived.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "receive_messages",
        "POST",
        "/v1/queues/{queue}/receive".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ReceivedMessages:
    from ...models.received_messages import ReceivedMessages

    if response.status_code == 200:
        response_200 = ReceivedMessages.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
