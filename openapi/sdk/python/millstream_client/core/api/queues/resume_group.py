from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.resumed import Resumed


def resume_group(
    queue: str,
    group: str,
) -> Call[Resumed]:
    """Resume delivery of a parked group in order.

    The failing message gets all its attempts again.
    """

    _kwargs: dict[str, Any] = {}

    return Call(
        "resume_group",
        "DELETE",
        "/v1/queues/{queue}/groups/{group}/pause".format(
            queue=quote(str(queue), safe=""),
            group=quote(str(group), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> Resumed:
    from ...models.resumed import Resumed

    if response.status_code == 200:
        response_200 = Resumed.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
