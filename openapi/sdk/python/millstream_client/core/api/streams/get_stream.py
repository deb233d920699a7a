from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.stream_out import StreamOut


def get_stream(
    stream: str,
    *,
    if_none_match: str | Unset = UNSET,
) -> Call[StreamOut]:
    """Show a stream's configuration."""
    headers: dict[str, Any] = {}
    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_stream",
        "GET",
        "/v1/streams/{stream}".format(
            stream=quote(str(stream), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> StreamOut:
    from ...models.stream_out import StreamOut

    if response.status_code == 200:
        response_200 = StreamOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
