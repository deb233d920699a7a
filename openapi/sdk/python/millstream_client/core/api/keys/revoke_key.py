from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset


def revoke_key(
    key: str,
    *,
    if_match: str | Unset = UNSET,
) -> Call[None]:
    """Revoke a credential permanently. All processes close its open connections."""
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    _kwargs: dict[str, Any] = {}

    return Call(
        "revoke_key",
        "DELETE",
        "/v1/keys/{key}".format(
            key=quote(str(key), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> None:
    if response.status_code == 204:
        return None
    raise AssertionError(f"{response.status_code} was not read")
