from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.attempt_out import AttemptOut


def resend_delivery(
    webhook: str,
    delivery: str,
) -> Call[AttemptOut]:
    """Resend a delivery now under its `webhook-id`, and return the result.

    Deliveries that succeeded can be resent too. A message that is waiting for its next attempt is removed from its queue
    if this one succeeds.
    """

    _kwargs: dict[str, Any] = {}

    return Call(
        "resend_delivery",
        "POST",
        "/v1/webhooks/{webhook}/deliveries/{delivery}/resends".format(
            webhook=quote(str(webhook), safe=""),
            delivery=quote(str(delivery), safe=""),
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
