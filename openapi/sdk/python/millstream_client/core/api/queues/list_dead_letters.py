from __future__ import annotations

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
    limit: int | Unset = 100,
    cursor: str | Unset = UNSET,
) -> Call[DeadLetters]:
    """List the dead letters of a queue, oldest first."""

    params: dict[str, Any] = {}

    params["limit"] = limit

    params["cursor"] = cursor

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
