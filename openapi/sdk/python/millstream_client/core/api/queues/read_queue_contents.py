from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.queue_contents_page import QueueContentsPage


def read_queue_contents(
    queue: str,
    *,
    after: int | Unset = -1,
    dead_letters: bool | Unset = False,
    partition: int | Unset = 0,
) -> Call[QueueContentsPage]:
    """Read the messages or dead letters of a queue by offset, with all that a copy needs.

    Mirrors copy queues with this, partition by partition. Nothing is received.
    """

    params: dict[str, Any] = {}

    params["after"] = after

    params["dead_letters"] = dead_letters

    params["partition"] = partition

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "read_queue_contents",
        "GET",
        "/v1/queues/{queue}/contents".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> QueueContentsPage:
    from ...models.queue_contents_page import QueueContentsPage

    if response.status_code == 200:
        response_200 = QueueContentsPage.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
