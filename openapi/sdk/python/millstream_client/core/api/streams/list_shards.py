from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.shards import Shards


def list_shards(
    stream: str,
) -> Call[Shards]:
    """List the shards of a stream, open and closed, with the extent of their logs."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_shards",
        "GET",
        "/v1/streams/{stream}/shards".format(
            stream=quote(str(stream), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> Shards:
    from ...models.shards import Shards

    if response.status_code == 200:
        response_200 = Shards.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
