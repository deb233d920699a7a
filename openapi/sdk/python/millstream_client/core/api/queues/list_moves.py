from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.move_list import MoveList


def list_moves(
    queue: str,
    *,
    limit: int | Unset = 100,
) -> Call[MoveList]:
    """List the moves from a queue, newest first."""

    params: dict[str, Any] = {}

    params["limit"] = limit

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_moves",
        "GET",
        "/v1/queues/{queue}/moves".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> MoveList:
    from ...models.move_list import MoveList

    if response.status_code == 200:
        response_200 = MoveList.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
