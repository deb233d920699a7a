from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.flush_out import FlushOut


def flush_archive(
    stream: str,
) -> Call[FlushOut]:
    """Archive all records of a stream now, regardless of their age.

    The job is done when all of them are archived; until then it restarts after each failure.
    """

    _kwargs: dict[str, Any] = {}

    return Call(
        "flush_archive",
        "POST",
        "/v1/archives/{stream}/flushes".format(
            stream=quote(str(stream), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> FlushOut:
    from ...models.flush_out import FlushOut

    if response.status_code == 202:
        response_202 = FlushOut.from_dict(response.json())

        return response_202

    raise AssertionError(f"{response.status_code} was not read")
