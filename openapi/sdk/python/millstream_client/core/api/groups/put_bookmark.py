from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.bookmark_in import BookmarkIn
    from ...models.bookmark_out import BookmarkOut


def put_bookmark(
    group: str,
    bookmark: str,
    *,
    body: BookmarkIn | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Call[BookmarkOut]:
    """Save the group's current offsets, or other offsets, as a bookmark."""
    headers: dict[str, Any] = {}
    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "put_bookmark",
        "PUT",
        "/v1/groups/{group}/bookmarks/{bookmark}".format(
            group=quote(str(group), safe=""),
            bookmark=quote(str(bookmark), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> BookmarkOut:
    from ...models.bookmark_out import BookmarkOut

    if response.status_code == 200:
        response_200 = BookmarkOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
