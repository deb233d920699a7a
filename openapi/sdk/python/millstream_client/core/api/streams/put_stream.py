from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.stream_config import StreamConfig
    from ...models.stream_stored import StreamStored


def put_stream(
    stream: str,
    *,
    body: StreamConfig | Unset = UNSET,
    dry_run: bool | Unset = False,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Call[StreamStored]:
    """Create a stream, or replace its configuration.

    With `If-None-Match: *`, an existing stream is not changed: the response is 412,
    with the stream (`current`) and the requested fields that differ from it (`changes`).
    """
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "put_stream",
        "PUT",
        "/v1/streams/{stream}".format(
            stream=quote(str(stream), safe=""),
        ),
        _read,
        params=params,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> StreamStored:
    from ...models.stream_stored import StreamStored

    if response.status_code == 200:
        response_200 = StreamStored.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = StreamStored.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
