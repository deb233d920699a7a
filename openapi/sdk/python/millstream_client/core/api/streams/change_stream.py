from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.stream_out import StreamOut
    from ...models.stream_patch import StreamPatch


def change_stream(
    stream: str,
    *,
    body: StreamPatch,
    if_match: str | Unset = UNSET,
) -> Call[StreamOut]:
    """Change fields of a stream's configuration."""
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "change_stream",
        "PATCH",
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
