from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.queue_page import QueuePage


def list_queues(
    *,
    prefix: str | Unset = "",
    limit: int | Unset = 100,
    cursor: str | Unset = "",
    measured: bool | Unset = False,
) -> Call[QueuePage]:
    """List queues by name."""

    params: dict[str, Any] = {}

    params["prefix"] = prefix

    params["limit"] = limit

    params["cursor"] = cursor

    params["measured"] = measured

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_queues",
        "GET",
        "/v1/queues",
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> QueuePage:
    from ...models.queue_page import QueuePage

    if response.status_code == 200:
        response_200 = QueuePage.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
