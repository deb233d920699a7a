from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import File

if TYPE_CHECKING:
    from ...models.staged_out import StagedOut


def stage_records(
    stream: str,
    *,
    body: File,
) -> Call[StagedOut]:
    """Stage records for a commit within one day.

    The body is an Arrow stream with the column `data` and optionally `key`, `event_ts` and `headers`. Its content type can
    also be `application/vnd.apache.arrow.stream`. Staged records are not readable until they are committed.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["content"] = body.payload

    headers["Content-Type"] = "application/octet-stream"
    return Call(
        "stage_records",
        "POST",
        "/v1/streams/{stream}/staged".format(
            stream=quote(str(stream), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> StagedOut:
    from ...models.staged_out import StagedOut

    if response.status_code == 201:
        response_201 = StagedOut.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
