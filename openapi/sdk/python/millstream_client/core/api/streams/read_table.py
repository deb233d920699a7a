from __future__ import annotations

from io import BytesIO
from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, File, Unset


def read_table(
    stream: str,
    shard: int,
    *,
    offset: int,
    end: int | Unset = UNSET,
    stream_id: str | Unset = UNSET,
    bytes_max: int | Unset = 16777216,
) -> Call[File]:
    """Read records of a shard in order, as an Arrow stream.

    For bulk reads. Response headers contain the offset to continue at and the extent of the shard. Records in the hot
    store and in the archive are read as one log. The content type is `application/octet-stream` if `Accept` names it and
    not `application/vnd.apache.arrow.stream`.
    """

    params: dict[str, Any] = {}

    params["offset"] = offset

    params["end"] = end

    params["stream_id"] = stream_id

    params["bytes_max"] = bytes_max

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "read_table",
        "GET",
        "/v1/streams/{stream}/shards/{shard}/table".format(
            stream=quote(str(stream), safe=""),
            shard=quote(str(shard), safe=""),
        ),
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> File:
    if response.status_code == 200:
        response_200 = File(payload=BytesIO(response.content))

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
