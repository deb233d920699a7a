from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.append_columns import AppendColumns
    from ...models.appended_columns import AppendedColumns


def append_columns(
    stream: str,
    *,
    body: AppendColumns,
    idempotency_key: str | Unset = UNSET,
    millstream_acknowledge: str | Unset = UNSET,
) -> Call[AppendedColumns]:
    """Append many records, column by column.

    The most efficient way to append, in MessagePack. The records are the same as those of other appends, without headers
    and event times. Check `failed`: records can be rejected individually.
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
        "append_columns",
        "POST",
        "/v1/streams/{stream}/columns".format(
            stream=quote(str(stream), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> AppendedColumns:
    from ...models.appended_columns import AppendedColumns

    if response.status_code == 200:
        response_200 = AppendedColumns.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
