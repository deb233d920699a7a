from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.view_detail import ViewDetail


def rebuild_view(
    view: str,
    *,
    if_match: str | Unset = UNSET,
) -> Call[ViewDetail]:
    """Build the rows of a view again from its `start`, beside the present ones.

    When the new revision has caught up, it replaces the present one at the same records, and its `report` compares their rows.
    """
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    _kwargs: dict[str, Any] = {}

    return Call(
        "rebuild_view",
        "POST",
        "/v1/views/{view}/rebuilds".format(
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
