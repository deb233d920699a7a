from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.replica_set_out import ReplicaSetOut
    from ...models.store_recovery import StoreRecovery


def recover_stores(
    *,
    body: StoreRecovery,
) -> Call[ReplicaSetOut]:
    """Continue with one store when a majority is permanently lost.

    Acknowledged writes that only the lost stores had are lost; readers receive a gap. Choose the store with the highest epoch
    and position.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "recover_stores",
        "POST",
        "/v1/stores/recover",
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
