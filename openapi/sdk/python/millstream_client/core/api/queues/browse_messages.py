from __future__ import annotations

import datetime
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
    group: list[str] | Unset = UNSET,
    header: list[str] | Unset = UNSET,
    body: list[str] | Unset = UNSET,
    text: str | Unset = UNSET,
    from_: datetime.datetime | Unset = UNSET,
    to: datetime.datetime | Unset = UNSET,
    limit: int | Unset = 100,
    cursor: str | Unset = UNSET,
    state: MessageState | Unset = UNSET,
) -> Call[BrowsedMessages]:
    """Browse messages without receiving them: all, or those that match a filter.

    A filtered page may be short or empty and yet not be the last: it ends after 1000 messages were examined.
    """

    params: dict[str, Any] = {}

    json_group: list[str] | Unset = UNSET
    if not isinstance(group, Unset):
        json_group = group

    params["group"] = json_group

    json_header: list[str] | Unset = UNSET
    if not isinstance(header, Unset):
        json_header = header

    params["header"] = json_header

    json_body: list[str] | Unset = UNSET
    if not isinstance(body, Unset):
        json_body = body

    params["body"] = json_body

    params["text"] = text

    json_from_: str | Unset = UNSET
    if not isinstance(from_, Unset):
        json_from_ = from_.isoformat()
    params["from"] = json_from_

    json_to: str | Unset = UNSET
    if not isinstance(to, Unset):
        json_to = to.isoformat()
    params["to"] = json_to

    params["limit"] = limit

    params["cursor"] = cursor

    json_state: str | Unset = UNSET
    if not isinstance(state, Unset):
        json_state = state.value

    params["state"] = json_state

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
