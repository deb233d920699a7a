from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.truncate import Truncate
    from ...models.truncated_out import TruncatedOut


def truncate_shard(
    stream: str,
    shard: int,
    *,
    body: Truncate,
) -> Call[TruncatedOut]:
    """Permanently delete the records of a shard before an offset."""
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "truncate_shard",
        "POST",
        "/v1/streams/{stream}/shards/{shard}/truncate".format(
            stream=quote(str(stream), safe=""),
            shard=quote(str(shard), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> TruncatedOut:
    from ...models.truncated_out import TruncatedOut

    if response.status_code == 200:
        response_200 = TruncatedOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
