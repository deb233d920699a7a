from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.replay_out import ReplayOut


def retry_replay(
    replay: str,
) -> Call[ReplayOut]:
    """Retry a failed replay from its current position."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "retry_replay",
        "POST",
        "/v1/replays/{replay}/retry".format(
            replay=quote(str(replay), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ReplayOut:
    from ...models.replay_out import ReplayOut

    if response.status_code == 200:
        response_200 = ReplayOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
