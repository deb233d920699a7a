from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.reshard import Reshard
    from ...models.shards import Shards


def reshard_stream(
    stream: str,
    *,
    body: Reshard,
) -> Call[Shards]:
    """Split a shard, merge two adjacent shards, or reshard to a number of equal shards.

    Reads and writes continue, and records with the same key stay in order. Returns the stream's shards after the reshard.
    Only one reshard of a stream runs at a time.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "reshard_stream",
        "POST",
        "/v1/streams/{stream}/reshard".format(
            stream=quote(str(stream), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> Shards:
    from ...models.shards import Shards

    if response.status_code == 200:
        response_200 = Shards.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
