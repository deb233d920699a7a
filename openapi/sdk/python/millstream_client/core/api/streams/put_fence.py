from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.fence_config import FenceConfig
    from ...models.fence_out import FenceOut


def put_fence(
    stream: str,
    shard: int,
    *,
    body: FenceConfig,
) -> Call[FenceOut]:
    """Set the fencing token of a shard. Appends must then carry this token.

    With `expected`, only if that is the current token. An empty token removes the fence.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "put_fence",
        "PUT",
        "/v1/streams/{stream}/shards/{shard}/fence".format(
            stream=quote(str(stream), safe=""),
            shard=quote(str(shard), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> FenceOut:
    from ...models.fence_out import FenceOut

    if response.status_code == 200:
        response_200 = FenceOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
