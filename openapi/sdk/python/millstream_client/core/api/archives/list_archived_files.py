from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.archived_file_page import ArchivedFilePage


def list_archived_files(
    stream: str,
    *,
    shard: int | Unset = 0,
    limit: int | Unset = 100,
    cursor: str | Unset = "",
) -> Call[ArchivedFilePage]:
    """List the Parquet files of a shard, by offset."""

    params: dict[str, Any] = {}

    params["shard"] = shard

    params["limit"] = limit

    params["cursor"] = cursor

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_archived_files",
        "GET",
        "/v1/archives/{stream}/files".format(
            stream=quote(str(stream), safe=""),
        ),
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ArchivedFilePage:
    from ...models.archived_file_page import ArchivedFilePage

    if response.status_code == 200:
        response_200 = ArchivedFilePage.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
