from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.view_detail import ViewDetail


def roll_back_view(
    view: str,
    *,
    if_match: str | Unset = UNSET,
) -> Call[ViewDetail]:
    """Return to the former revision of a view: put its query again.

    `building` is that revision; within about a second, when both include the same records, it replaces the present one, which is then
    the former one. Sinks get the rows in which the two differ. Only a view with `keep_former_seconds` has a former revision. The caller
    needs `stream:read` and `view:read` on the streams and views that it reads.
    """
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    _kwargs: dict[str, Any] = {}

    return Call(
        "roll_back_view",
        "POST",
        "/v1/views/{view}/rollbacks".format(
            view=quote(str(view), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ViewDetail:
    from ...models.view_detail import ViewDetail

    if response.status_code == 202:
        response_202 = ViewDetail.from_dict(response.json())

        return response_202

    raise AssertionError(f"{response.status_code} was not read")
