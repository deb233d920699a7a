from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.append_to_shard import AppendToShard
    from ...models.appended_record_out import AppendedRecordOut
    from ...models.appended_records import AppendedRecords


def append_records_to_shard(
    stream: str,
    shard: int,
    *,
    body: AppendToShard,
) -> Call[AppendedRecords | AppendedRecordOut]:
    """Append records to one shard: all of them or none.

    With `producer`, a repeated batch adds nothing. With `expected_offset`, the batch is accepted only if it is the next
    offset of the shard. With `fence`, it is accepted only if that is the fencing token of the shard.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "append_records_to_shard",
        "POST",
        "/v1/streams/{stream}/shards/{shard}/records".format(
            stream=quote(str(stream), safe=""),
            shard=quote(str(shard), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> AppendedRecords | AppendedRecordOut:
    from ...models.appended_record_out import AppendedRecordOut
    from ...models.appended_records import AppendedRecords

    if response.status_code == 200:
        response_200 = AppendedRecords.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = AppendedRecordOut.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
