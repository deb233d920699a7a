from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.bookmark_list import BookmarkList


def list_bookmarks(
    group: str,
) -> Call[BookmarkList]:
    """List a group's bookmarks by name."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_bookmarks",
        "GET",
        "/v1/groups/{group}/bookmarks".format(
            group=quote(str(group), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> BookmarkList:
    from ...models.bookmark_list import BookmarkList

    if response.status_code == 200:
        response_200 = BookmarkList.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
