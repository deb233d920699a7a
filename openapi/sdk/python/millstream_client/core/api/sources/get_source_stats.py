from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.source_stats import SourceStats


def get_source_stats(
    source: str,
) -> Call[SourceStats]:
    """Show the numbers of accepted, repeated and rejected requests, and what waits."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_source_stats",
        "GET",
        "/v1/sources/{source}/stats".format(
            source=quote(str(source), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> SourceStats:
    from ...models.source_stats import SourceStats

    if response.status_code == 200:
        response_200 = SourceStats.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
