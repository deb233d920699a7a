from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.replica_set_out import ReplicaSetOut


def remove_store(
    address: str,
) -> Call[ReplicaSetOut]:
    """Remove a store that is not the primary."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "remove_store",
        "DELETE",
        "/v1/stores/members/{address}".format(
            address=quote(str(address), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ReplicaSetOut:
    from ...models.replica_set_out import ReplicaSetOut

    if response.status_code == 200:
        response_200 = ReplicaSetOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
