from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.replay_out import ReplayOut


def pause_replay(
    replay: str,
) -> Call[ReplayOut]:
    """Pause a replay.

    A running replay stops within seconds; until then its `requested_state` is 'pause'.
    """

    _kwargs: dict[str, Any] = {}

    return Call(
        "pause_replay",
        "POST",
        "/v1/replays/{replay}/pause".format(
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
