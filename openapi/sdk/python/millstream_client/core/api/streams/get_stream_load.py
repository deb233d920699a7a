from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.stream_load import StreamLoad


def get_stream_load(
    stream: str,
) -> Call[StreamLoad]:
    """Return the load of each open shard over the last minute.

    It has the shard's hottest keys, and where to split it.
    """

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_stream_load",
        "GET",
        "/v1/streams/{stream}/load".format(
            stream=quote(str(stream), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> StreamLoad:
    from ...models.stream_load import StreamLoad

    if response.status_code == 200:
        response_200 = StreamLoad.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
