from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.live_out import LiveOut


def check_live() -> Call[LiveOut]:
    """Liveness check."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "check_live",
        "GET",
        "/livez",
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> LiveOut:
    from ...models.live_out import LiveOut

    if response.status_code == 200:
        response_200 = LiveOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
