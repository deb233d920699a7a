from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.whoami_out import WhoamiOut


def whoami() -> Call[WhoamiOut]:
    """Return the caller's identity and permissions."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "whoami",
        "GET",
        "/v1/whoami",
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> WhoamiOut:
    from ...models.whoami_out import WhoamiOut

    if response.status_code == 200:
        response_200 = WhoamiOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
