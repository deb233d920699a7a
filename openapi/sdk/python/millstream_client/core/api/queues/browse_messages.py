from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.browsed_messages import BrowsedMessages
    from ...models.message_state import MessageState


def browse_messages(
    queue: str,
    *,
    state: MessageState | Unset = UNSET,
    limit: int | Unset = 100,
    cursor: str | Unset = UNSET,
) -> Call[BrowsedMessages]:
    """Browse the messages of a queue without receiving them."""

    params: dict[str, Any] = {}

    json_state: str | Unset = UNSET
    if not isinstance(state, Unset):
        json_state = state.value

    params["state"] = json_state

    params["limit"] = limit

    params["cursor"] = cursor

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "browse_messages",
        "GET",
        "/v1/queues/{queue}/messages".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> BrowsedMessages:
    from ...models.browsed_messages import BrowsedMessages

    if response.status_code == 200:
        response_200 = BrowsedMessages.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
