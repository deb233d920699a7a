from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset


def delete_namespace(
    namespace: str,
    *,
    if_match: str | Unset = UNSET,
) -> Call[None]:
    """Delete an empty namespace, including its finished jobs and ended keys.

    Queues and streams that were deleted within the last ten minutes, and archives, count as content.
    """
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    _kwargs: dict[str, Any] = {}

    return Call(
        "delete_namespace",
        "DELETE",
        "/v1/namespaces/{namespace}".format(
            namespace=quote(str(namespace), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> None:
    if response.status_code == 204:
        return None
    raise AssertionError(f"{response.status_code} was not read")
