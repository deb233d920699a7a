from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.start import Start
    from ...models.stream_records import StreamRecords


def read_stream(
    stream: str,
    *,
    cursor: str | Unset = UNSET,
    from_: Start | Unset = UNSET,
    time: datetime.datetime | Unset = UNSET,
    limit: int | Unset = 1000,
    bytes_max: int | Unset = 10485760,
    wait_seconds: float | Unset = 0.0,
) -> Call[StreamRecords]:
    """Read all shards of a stream by arrival time; each shard in order, after its parents.

    Continue at `next_cursor`, which is also returned if no records were found. Without a cursor, the read starts at the
    oldest record, with `from=latest` at new records only, or at a `time`.
    """

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    json_from_: str | Unset = UNSET
    if not isinstance(from_, Unset):
        json_from_ = from_.value

    params["from"] = json_from_

    json_time: str | Unset = UNSET
    if not isinstance(time, Unset):
        json_time = time.isoformat()
    params["time"] = json_time

    params["limit"] = limit

    params["bytes_max"] = bytes_max

    params["wait_seconds"] = wait_seconds

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "read_stream",
        "GET",
        "/v1/streams/{stream}/records".format(
            stream=quote(str(stream), safe=""),
        ),
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> StreamRecords:
    from ...models.stream_records import StreamRecords

    if response.status_code == 200:
        response_200 = StreamRecords.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
