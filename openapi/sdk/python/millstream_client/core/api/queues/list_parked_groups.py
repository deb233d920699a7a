from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.parked_groups import ParkedGroups


def list_parked_groups(
    queue: str,
    *,
    state: Literal["parked"] | Unset = "parked",
    limit: int | Unset = 100,
    cursor: str | Unset = "",
) -> Call[ParkedGroups]:
    """List the parked groups of a queue by name. They are not delivered until resumed."""

    params: dict[str, Any] = {}

    params["state"] = state

    params["limit"] = limit

    params["cursor"] = cursor

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_parked_groups",
        "GET",
        "/v1/queues/{queue}/groups".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ParkedGroups:
    from ...models.parked_groups import ParkedGroups

    if response.status_code == 200:
        response_200 = ParkedGroups.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
