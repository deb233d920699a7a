from __future__ import annotations

from typing import Any

import httpx

from ....calls import Call


def log_out() -> Call[None]:
    """Log a browser out: its session ends in all processes."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "log_out",
        "DELETE",
        "/v1/sessions",
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> None:
    if response.status_code == 204:
        return None
    raise AssertionError(f"{response.status_code} was not read")
