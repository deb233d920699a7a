from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.attempt_out import AttemptOut


def test_webhook(
    webhook: str,
) -> Call[AttemptOut]:
    """Send a signed test event, even from a disabled webhook, and return the result."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "test_webhook",
        "POST",
        "/v1/webhooks/{webhook}/tests".format(
            webhook=quote(str(webhook), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> AttemptOut:
    from ...models.attempt_out import AttemptOut

    if response.status_code == 200:
        response_200 = AttemptOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
