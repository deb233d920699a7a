from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...models.stream_out import StreamOut
from ...types import UNSET, Unset


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
    if response.status_code == 200:
        response_200 = StreamOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
