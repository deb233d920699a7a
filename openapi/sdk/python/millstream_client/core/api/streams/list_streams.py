from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.stream_page import StreamPage


def list_streams(
    *,
    prefix: str | Unset = "",
    limit: int | Unset = 100,
    cursor: str | Unset = "",
    measured: bool | Unset = False,
) -> Call[StreamPage]:
    """List streams by name."""

    params: dict[str, Any] = {}

    params["prefix"] = prefix

    params["limit"] = limit

    params["cursor"] = cursor

    params["measured"] = measured

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_streams",
        "GET",
        "/v1/streams",
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> StreamPage:
    from ...models.stream_page import StreamPage

    if response.status_code == 200:
        response_200 = StreamPage.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
