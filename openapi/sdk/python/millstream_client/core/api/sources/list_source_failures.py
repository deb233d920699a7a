from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.source_failures import SourceFailures


def list_source_failures(
    source: str,
) -> Call[SourceFailures]:
    """List the last 100 requests that were rejected, the newest first, with reasons."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_source_failures",
        "GET",
        "/v1/sources/{source}/failures".format(
            source=quote(str(source), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> SourceFailures:
    from ...models.source_failures import SourceFailures

    if response.status_code == 200:
        response_200 = SourceFailures.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
