from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.replay_out import ReplayOut


def resume_replay(
    replay: str,
) -> Call[ReplayOut]:
    """Resume a paused replay."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "resume_replay",
        "POST",
        "/v1/replays/{replay}/resume".format(
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
