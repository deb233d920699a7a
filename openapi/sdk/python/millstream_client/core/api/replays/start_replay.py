from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.plan_out import PlanOut
    from ...models.replay_config import ReplayConfig
    from ...models.replay_out import ReplayOut


def start_replay(
    *,
    body: ReplayConfig,
) -> Call[PlanOut | ReplayOut]:
    """Start a replay, which sends each record once, or preview it with `dry_run`."""
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "start_replay",
        "POST",
        "/v1/replays",
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> PlanOut | ReplayOut:
    from ...models.plan_out import PlanOut
    from ...models.replay_out import ReplayOut

    if response.status_code == 200:
        response_200 = PlanOut.from_dict(response.json())

        return response_200

    if response.status_code == 202:
        response_202 = ReplayOut.from_dict(response.json())

        return response_202

    raise AssertionError(f"{response.status_code} was not read")
