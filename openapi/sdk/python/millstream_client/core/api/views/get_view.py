from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.view_detail import ViewDetail


def get_view(
    view: str,
) -> Call[ViewDetail]:
    """Show a view, the plan of its query, and what its rows include."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_view",
        "GET",
        "/v1/views/{view}".format(
            view=quote(str(view), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ViewDetail:
    from ...models.view_detail import ViewDetail

    if response.status_code == 200:
        response_200 = ViewDetail.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
