from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset


def delete_view(
    view: str,
    *,
    if_match: str | Unset = UNSET,
) -> Call[None]:
    """Delete a view and its rows. The stream is kept."""
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    _kwargs: dict[str, Any] = {}

    return Call(
        "delete_view",
        "DELETE",
        "/v1/views/{view}".format(
            view=quote(str(view), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> None:
    if response.status_code == 204:
        return None
    raise AssertionError(f"{response.status_code} was not read")
