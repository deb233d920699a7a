from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.pause_config import PauseConfig


def pause_group(
    queue: str,
    group: str,
    *,
    body: PauseConfig | Unset = UNSET,
) -> Call[None]:
    """Pause delivery of a group until it is resumed. Messages in flight stay in flight."""
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "pause_group",
        "PUT",
        "/v1/queues/{queue}/groups/{group}/pause".format(
            queue=quote(str(queue), safe=""),
            group=quote(str(group), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> None:
    if response.status_code == 204:
        return None
    raise AssertionError(f"{response.status_code} was not read")
