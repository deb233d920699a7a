from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.job_state import JobState
    from ...models.replay_page import ReplayPage


def list_replays(
    *,
    state: JobState | Unset = UNSET,
    limit: int | Unset = 100,
    cursor: str | Unset = "",
) -> Call[ReplayPage]:
    """List replays, newest first. Finished replays are listed for 30 days."""

    params: dict[str, Any] = {}

    json_state: str | Unset = UNSET
    if not isinstance(state, Unset):
        json_state = state.value

    params["state"] = json_state

    params["limit"] = limit

    params["cursor"] = cursor

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_replays",
        "GET",
        "/v1/replays",
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ReplayPage:
    from ...models.replay_page import ReplayPage

    if response.status_code == 200:
        response_200 = ReplayPage.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
