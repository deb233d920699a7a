from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.purged import Purged


def purge_queue(
    queue: str,
) -> Call[Purged]:
    """Delete all messages of a queue, including those in flight. Dead letters are kept."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "purge_queue",
        "POST",
        "/v1/queues/{queue}/purges".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> Purged:
    from ...models.purged import Purged

    if response.status_code == 200:
        response_200 = Purged.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
