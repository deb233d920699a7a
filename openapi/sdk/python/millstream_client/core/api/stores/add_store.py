from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.replica_set_out import ReplicaSetOut
    from ...models.store_addition import StoreAddition


def add_store(
    *,
    body: StoreAddition,
) -> Call[ReplicaSetOut]:
    """Add an empty store. It counts once it has all data."""
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "add_store",
        "POST",
        "/v1/stores/members",
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
