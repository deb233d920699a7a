from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.archive_out import ArchiveOut


def get_archive(
    stream: str,
) -> Call[ArchiveOut]:
    """Show the archive state of a stream, by shard."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_archive",
        "GET",
        "/v1/archives/{stream}".format(
            stream=quote(str(stream), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ArchiveOut:
    from ...models.archive_out import ArchiveOut

    if response.status_code == 200:
        response_200 = ArchiveOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
