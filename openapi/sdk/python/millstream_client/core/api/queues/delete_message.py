from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call


def delete_message(
    queue: str,
    message: str,
) -> Call[None]:
    """Delete a message or dead letter by id or offset, in any state."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "delete_message",
        "DELETE",
        "/v1/queues/{queue}/messages/{message}".format(
            queue=quote(str(queue), safe=""),
            message=quote(str(message), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> None:
    if response.status_code == 204:
        return None
    raise AssertionError(f"{response.status_code} was not read")
