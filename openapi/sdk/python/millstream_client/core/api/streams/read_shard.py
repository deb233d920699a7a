from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.shard_records import ShardRecords


def read_shard(
    stream: str,
    shard: int,
    *,
    offset: int | Unset = UNSET,
    time: datetime.datetime | Unset = UNSET,
    tail: int | Unset = UNSET,
    limit: int | Unset = 1000,
    bytes_max: int | Unset = 10485760,
    wait_seconds: float | Unset = 0.0,
    stream_id: str | Unset = UNSET,
) -> Call[ShardRecords]:
    """Read a shard in order, from an offset, from a time, or its last records.

    Continue at `next_offset` until the shard has `ended`; its `children` follow. Expired records and holes are reported
    as a `gap`. With `wait_seconds`, the call waits at the end of the shard for the next record.
    """

    params: dict[str, Any] = {}

    params["offset"] = offset

    json_time: str | Unset = UNSET
    if not isinstance(time, Unset):
        json_time = time.isoformat()
    params["time"] = json_time

    params["tail"] = tail

    params["limit"] = limit

    params["bytes_max"] = bytes_max

    params["wait_seconds"] = wait_seconds

    params["stream_id"] = stream_id

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "read_shard",
        "GET",
        "/v1/streams/{stream}/shards/{shard}/records".format(
            stream=quote(str(stream), safe=""),
            shard=quote(str(shard), safe=""),
        ),
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ShardRecords:
    from ...models.shard_records import ShardRecords

    if response.status_code == 200:
        response_200 = ShardRecords.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
