from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call


def delete_bookmark(
    group: str,
    bookmark: str,
) -> Call[None]:
    """Delete a bookmark."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "delete_bookmark",
        "DELETE",
        "/v1/groups/{group}/bookmarks/{bookmark}".format(
            group=quote(str(group), safe=""),
            bookmark=quote(str(bookmark), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> None:
    if response.status_code == 204:
        return None
    raise AssertionError(f"{response.status_code} was not read")
