from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.replica_set_out import ReplicaSetOut
    from ...models.switch_over import SwitchOver


def switch_over_stores(
    *,
    body: SwitchOver | Unset = UNSET,
) -> Call[ReplicaSetOut]:
    """Make another store the primary, for maintenance of the present one.

    Calls wait meanwhile, for less than a second; nothing is lost, and none fails.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "switch_over_stores",
        "POST",
        "/v1/stores/switch-over",
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ReplicaSetOut:
    from ...models.replica_set_out import ReplicaSetOut

    if response.status_code == 200:
        response_200 = ReplicaSetOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
