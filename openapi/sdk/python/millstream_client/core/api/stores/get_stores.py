from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.stores_out import StoresOut


def get_stores() -> Call[StoresOut]:
    """Show the stores, their roles, and how far each has the data."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_stores",
        "GET",
        "/v1/stores",
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> StoresOut:
    from ...models.stores_out import StoresOut

    if response.status_code == 200:
        response_200 = StoresOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
