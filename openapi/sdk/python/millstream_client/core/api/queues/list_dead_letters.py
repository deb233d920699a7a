from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.dead_letters import DeadLetters


def list_dead_letters(
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
    reason: str | Unset = UNSET,
) -> Call[DeadLetters]:
    """List the dead letters of a queue, oldest first: all, or those that match a filter.

    A filtered page may be short or empty and yet not be the last: it ends after 1000 dead letters were examined.
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

    params["reason"] = reason

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_dead_letters",
        "GET",
        "/v1/queues/{queue}/dead-letters".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> DeadLetters:
    from ...models.dead_letters import DeadLetters

    if response.status_code == 200:
        response_200 = DeadLetters.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
