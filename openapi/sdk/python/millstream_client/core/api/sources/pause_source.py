from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.source_out import SourceOut


def pause_source(
    source: str,
) -> Call[SourceOut]:
    """Pause a source. Its events are refused with 503, and providers send them again later."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "pause_source",
        "PUT",
        "/v1/sources/{source}/pause".format(
            source=quote(str(source), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> SourceOut:
    from ...models.source_out import SourceOut

    if response.status_code == 200:
        response_200 = SourceOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
