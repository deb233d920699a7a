from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.append_records import AppendRecords
    from ...models.appended_record_out import AppendedRecordOut
    from ...models.appended_records import AppendedRecords


def append_records(
    stream: str,
    *,
    body: AppendRecords,
    idempotency_key: str | Unset = UNSET,
    millstream_acknowledge: str | Unset = UNSET,
) -> Call[AppendedRecords | AppendedRecordOut]:
    """Append records to a stream. The key of each record selects its shard.

    Each record has its own result: check `failed`. A single record can be sent as an object or as a raw body of any other
    content type; the response is then one object, or a problem.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    if not isinstance(millstream_acknowledge, Unset):
        headers["Millstream-Acknowledge"] = millstream_acknowledge

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "append_records",
        "POST",
        "/v1/streams/{stream}/records".format(
            stream=quote(str(stream), safe=""),
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
