from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call


def close_socket(
    socket: str,
) -> Call[None]:
    """Close a WebSocket connection with code 4012 and end its session.

    What the session holds is released. Its process closes the connection within three seconds. The client can reconnect.
    """

    _kwargs: dict[str, Any] = {}

    return Call(
        "close_socket",
        "DELETE",
        "/v1/sockets/{socket}".format(
            socket=quote(str(socket), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> None:
    if response.status_code == 204:
        return None
    raise AssertionError(f"{response.status_code} was not read")
