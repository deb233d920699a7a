from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.socket_page import SocketPage


def list_sockets(
    *,
    limit: int | Unset = 100,
    cursor: str | Unset = "",
) -> Call[SocketPage]:
    """List the WebSocket connections of all processes, as of a few seconds ago.

    For a process with more than 500 connections, the oldest 500 are listed.
    """

    params: dict[str, Any] = {}

    params["limit"] = limit

    params["cursor"] = cursor

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_sockets",
        "GET",
        "/v1/sockets",
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> SocketPage:
    from ...models.socket_page import SocketPage

    if response.status_code == 200:
        response_200 = SocketPage.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
