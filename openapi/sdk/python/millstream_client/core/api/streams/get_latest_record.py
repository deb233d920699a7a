from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.record_out import RecordOut


def get_latest_record(
    stream: str,
    key: str,
) -> Call[RecordOut]:
    """Return the latest record of a key, if the stream has a `key_index`.

    The index covers records routed by their key since it was enabled.
    """

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_latest_record",
        "GET",
        "/v1/streams/{stream}/keys/{key}".format(
            stream=quote(str(stream), safe=""),
            key=quote(str(key), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> RecordOut:
    from ...models.record_out import RecordOut

    if response.status_code == 200:
        response_200 = RecordOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
