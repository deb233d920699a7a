from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.replica_set_out import ReplicaSetOut
    from ...models.store_replacement import StoreReplacement


def replace_store(
    *,
    body: StoreReplacement,
) -> Call[ReplicaSetOut]:
    """Replace a permanently lost store by an empty one.

    The new store counts once it has all data. Its configuration must be that of a member.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "replace_store",
        "POST",
        "/v1/stores/replace",
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
