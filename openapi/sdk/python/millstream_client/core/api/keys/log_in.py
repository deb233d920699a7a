from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.log_in import LogIn
    from ...models.logged_in_out import LoggedInOut


def log_in(
    *,
    body: LogIn | Unset = UNSET,
) -> Call[LoggedInOut]:
    """Log a browser in with an API key.

    The response sets the session cookie. The session ends when the key does, or after one day.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "log_in",
        "POST",
        "/v1/sessions",
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> LoggedInOut:
    from ...models.logged_in_out import LoggedInOut

    if response.status_code == 201:
        response_201 = LoggedInOut.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
