from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset


def delete_webhook(
    webhook: str,
    *,
    if_match: str | Unset = UNSET,
) -> Call[None]:
    """Delete a webhook, its secrets and its log. The queue or group is kept.

    It is paused first, until its requests in progress have ended.
    """
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    _kwargs: dict[str, Any] = {}

    return Call(
        "delete_webhook",
        "DELETE",
        "/v1/webhooks/{webhook}".format(
            webhook=quote(str(webhook), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> None:
    if response.status_code == 204:
        return None
    raise AssertionError(f"{response.status_code} was not read")
