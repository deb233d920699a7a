from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.view_out import ViewOut


def resume_view(
    view: str,
) -> Call[ViewOut]:
    """Resume a paused view, or one that has stopped."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "resume_view",
        "DELETE",
        "/v1/views/{view}/pause".format(
            view=quote(str(view), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ViewOut:
    from ...models.view_out import ViewOut

    if response.status_code == 200:
        response_200 = ViewOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
