from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.replay_detail import ReplayDetail


def get_replay(
    replay: str,
) -> Call[ReplayDetail]:
    """Show the progress of a replay, by shard."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_replay",
        "GET",
        "/v1/replays/{replay}".format(
            replay=quote(str(replay), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ReplayDetail:
    from ...models.replay_detail import ReplayDetail

    if response.status_code == 200:
        response_200 = ReplayDetail.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
