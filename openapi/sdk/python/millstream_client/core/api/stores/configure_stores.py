from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.replica_set_out import ReplicaSetOut
    from ...models.stores_patch import StoresPatch


def configure_stores(
    *,
    body: StoresPatch,
) -> Call[ReplicaSetOut]:
    """Change the number of stores that must have a write before it is acknowledged.

    Raise it before you add stores; remove stores before you lower it.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "configure_stores",
        "PATCH",
        "/v1/stores",
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
