from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset


def delete_mirror(
    mirror: str,
    *,
    if_match: str | Unset = UNSET,
) -> Call[None]:
    """Delete a mirror. The streams and queues and what was copied to them are kept; queues stay read-only."""
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    _kwargs: dict[str, Any] = {}

    return Call(
        "delete_mirror",
        "DELETE",
        "/v1/mirrors/{mirror}".format(
            mirror=quote(str(mirror), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> None:
    if response.status_code == 204:
        return None
    raise AssertionError(f"{response.status_code} was not read")
