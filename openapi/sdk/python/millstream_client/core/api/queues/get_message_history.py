from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.message_history_out import MessageHistoryOut


def get_message_history(
    queue: str,
    message: str,
) -> Call[MessageHistoryOut]:
    """Show the history of a message, even after it was deleted.

    Requires a queue with `history` enabled.
    """

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_message_history",
        "GET",
        "/v1/queues/{queue}/messages/{message}/history".format(
            queue=quote(str(queue), safe=""),
            message=quote(str(message), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> MessageHistoryOut:
    from ...models.message_history_out import MessageHistoryOut

    if response.status_code == 200:
        response_200 = MessageHistoryOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
