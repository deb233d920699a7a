from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call


def discard_staged(
    stream: str,
    staged: str,
) -> Call[None]:
    """Discard a staged entry, unless it was committed."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "discard_staged",
        "DELETE",
        "/v1/streams/{stream}/staged/{staged}".format(
            stream=quote(str(stream), safe=""),
            staged=quote(str(staged), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> None:
    if response.status_code == 204:
        return None
    raise AssertionError(f"{response.status_code} was not read")
