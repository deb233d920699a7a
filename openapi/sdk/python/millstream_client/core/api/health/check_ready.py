from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.ready_out import ReadyOut


def check_ready() -> Call[ReadyOut]:
    """Readiness check: the stores respond and have the right version."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "check_ready",
        "GET",
        "/readyz",
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ReadyOut:
    from ...models.ready_out import ReadyOut

    if response.status_code == 200:
        response_200 = ReadyOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
