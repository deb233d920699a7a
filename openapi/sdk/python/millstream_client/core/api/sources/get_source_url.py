from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.source_url import SourceUrl


def get_source_url(
    source: str,
) -> Call[SourceUrl]:
    """Show the path that receives the events of a source."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_source_url",
        "GET",
        "/v1/sources/{source}/url".format(
            source=quote(str(source), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> SourceUrl:
    from ...models.source_url import SourceUrl

    if response.status_code == 200:
        response_200 = SourceUrl.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
