from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...models.attempt_out import AttemptOut


def resend_delivery(
    webhook: str,
    delivery: str,
) -> Call[AttemptOut]:
    """Send a delivery again now, also one that succeeded, under its `webhook-id`; what came of it.

    A message that waits in its queue for its next attempt leaves it once this one succeeds.
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
    if response.status_code == 200:
        response_200 = AttemptOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
