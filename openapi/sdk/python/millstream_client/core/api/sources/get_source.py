from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.source_out import SourceOut


def get_source(
    source: str,
    *,
    if_none_match: str | Unset = UNSET,
) -> Call[SourceOut]:
    """Show the configuration of a source, without secrets."""
    headers: dict[str, Any] = {}
    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_source",
        "GET",
        "/v1/sources/{source}".format(
            source=quote(str(source), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> SourceOut:
    from ...models.source_out import SourceOut

    if response.status_code == 200:
        response_200 = SourceOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
